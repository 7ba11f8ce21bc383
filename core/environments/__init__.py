"""Environments for training: a Python with PyTorch each, made beside one another, tested, and then chosen."""
