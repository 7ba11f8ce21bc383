"""Slurm: batch files, submitted jobs, and their states in Slurm."""
