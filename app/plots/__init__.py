"""Plots as pyqtgraph draws them: axes, curves, gestures, pictures of a plot."""
