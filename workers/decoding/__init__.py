"""Writes text one token at a time, for the samples of a run."""
