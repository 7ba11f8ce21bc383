"""Bench: how a run scales over devices, what exchanging gradients costs, memory over time, and accumulation."""
