"""The folder that is added to a script's path: it holds `rankdeck`, the public package, and nothing else."""
