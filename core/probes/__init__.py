"""Measurements and looks before a run: data preview, link speed, cost of synchronising."""
