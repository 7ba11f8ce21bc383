"""This machine: its checks, self-tests, diagnostics, and environments with PyTorch."""
