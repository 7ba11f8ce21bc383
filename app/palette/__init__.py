"""Command palette: what can be reached by typing a few letters of its name."""
