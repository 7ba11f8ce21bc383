"""Other machines, reached with the system's own `ssh`: kept, checked, set up, trained on and followed."""
