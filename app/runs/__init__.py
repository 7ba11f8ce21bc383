"""The list of runs: scanner, rows, order, details and panel, with names, notes, tags and removal."""
