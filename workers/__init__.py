"""Rank processes: training with PyTorch, and the programs that look at data and devices."""
