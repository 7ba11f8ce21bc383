"""Measurements before a run, by rank processes without a host: estimates, tuning, benchmarks, the link, the data."""
