"""The ledger of trained data: blocks, chunks, claims and commits."""
