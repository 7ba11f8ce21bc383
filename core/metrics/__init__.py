"""Metrics on disk: `metrics.jsonl` and the columns made from it."""
