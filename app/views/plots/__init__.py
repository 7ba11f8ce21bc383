"""Plots that are drawn with QPainter from a few numbers a pixel. (pyqtgraph would cost 0.2 s and 30 MB at start.)"""
