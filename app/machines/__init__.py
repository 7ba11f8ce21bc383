"""Other machines: their devices in New run, and runs there that are followed."""
