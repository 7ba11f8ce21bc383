"""Theme, colours, icons and how numbers are written."""
