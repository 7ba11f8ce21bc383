"""A user's own script as a rank: starts it, watches what it prints, tells the run host, serves its `rankdeck`."""
