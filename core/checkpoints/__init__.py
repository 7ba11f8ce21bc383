"""Committed states of a run: written whole or not at all, and read back in any mode."""
