"""A run's folder: what is in it, and the run's state."""
