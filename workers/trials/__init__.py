"""Trials: real steps of a recipe on all ranks, or sums over them, for `rankdeck tune` and `rankdeck bench`."""
