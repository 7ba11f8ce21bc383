"""The run folder's disk: whether it is still there, and space reserved for an orderly end."""
