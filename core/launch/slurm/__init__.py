"""Slurm: batch files, jobs that were submitted, and what Slurm says of them."""
