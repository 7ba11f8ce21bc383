"""Threads: the one crossing to the GUI thread, background work, measurements, garbage collection."""
