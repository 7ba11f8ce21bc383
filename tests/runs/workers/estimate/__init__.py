"""Processes that time steps."""
