"""From ranks' lines to `metrics.jsonl`, columns and clients."""
