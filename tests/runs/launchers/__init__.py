"""Runs whose processes a launcher has started: torchrun, mpirun, srun."""
