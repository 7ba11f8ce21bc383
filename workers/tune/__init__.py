"""Trials of `rankdeck tune`: real steps of a recipe on all ranks, with one choice of settings after another."""
