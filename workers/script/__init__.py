"""A user's own script as a rank: starts it, reads its output, informs the run host, serves its `rankdeck`."""
