"""Metrics on their way from ranks to `metrics.jsonl`, columns and clients."""
