"""Plots of loss, throughput and devices."""

import PySide6.QtCore  # noqa: F401 - pyqtgraph takes the binding that is loaded first
