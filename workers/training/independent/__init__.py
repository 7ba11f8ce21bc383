"""Ranks that step by themselves: rounds of local SGD, and merges of separately trained weights."""
