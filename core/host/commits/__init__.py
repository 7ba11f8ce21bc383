"""Commits: ranks and host make one checkpoint together."""
