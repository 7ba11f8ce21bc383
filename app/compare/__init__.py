"""Comparison of several runs: their curves in one chart, and a table of differences."""
