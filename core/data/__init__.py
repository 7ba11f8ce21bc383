"""Datasets: files, folders and hub datasets, their formats and identity."""
