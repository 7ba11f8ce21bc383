"""What host, ranks and clients say to each other, and how it travels."""
