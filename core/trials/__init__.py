"""Sets of rank processes without a host that make real steps on request: for tuning and benchmarks."""
