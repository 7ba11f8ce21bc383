"""Resuming a run, planned before anything is changed."""
