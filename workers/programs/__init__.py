"""Programs that the run host and the command line start."""
