"""Which data is in the weights: blocks, chunks, claims and commits."""
