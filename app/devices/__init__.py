"""Devices: the machine's, read once a second, and the picker in New run."""
