"""What a script prints, read as metrics. Pure."""
