"""The form that sets up a run."""
