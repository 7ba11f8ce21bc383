"""Metrics read from what a script prints. Pure."""
