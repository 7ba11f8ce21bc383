"""Packages that are missing: asks, runs pip, and shows its output."""
