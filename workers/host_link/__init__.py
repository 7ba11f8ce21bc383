"""A rank's line to its run host: messages both ways, never in the way of a step."""
