"""A run's curves in memory: columns read in blocks, reduced to what a plot can show. No Qt."""
