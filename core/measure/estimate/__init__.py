"""Estimate of a run's memory and disk space before it starts, and the error of earlier estimates."""
