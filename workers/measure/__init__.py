"""Measurements by a rank without a host: a model's memory, real steps and sums timed, the speed of a link."""
