"""Checks of this machine, self-tests on its devices, and diagnostics for a report of a problem."""
