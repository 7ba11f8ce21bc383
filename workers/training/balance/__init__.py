"""Load balancing: each rank gets the share of a batch that its measured speed allows."""
