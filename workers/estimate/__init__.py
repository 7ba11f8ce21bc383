"""Probe of a recipe's memory: small real micro-batches in a process of its own."""
