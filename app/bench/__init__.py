"""Benchmarks: their page, its control, and the charts that it and files of results have."""
