"""Actions of the window, and why one is unavailable."""
