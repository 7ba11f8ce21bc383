"""Turns what a person asks for into calls of `core`, off the GUI thread."""
