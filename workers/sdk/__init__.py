"""The module that a person's own script may import as `rankdeck`."""
