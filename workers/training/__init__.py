"""The training loop of all modes, and what happens between two steps."""
