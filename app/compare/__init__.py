"""Several runs beside each other: curves over each other, and a table of what differs."""
