"""From a config to processes: mode, checks, environment, commands."""
