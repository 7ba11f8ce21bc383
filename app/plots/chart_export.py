"""Charts of pyqtgraph as files: a picture, a drawing."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph
from PySide6.QtCore import QBuffer, QByteArray, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator


def png_of(view: pyqtgraph.GraphicsView, scale: int) -> QImage:
    from pyqtgraph.exporters import ImageExporter

    exporter = ImageExporter(view.scene())
    exporter.parameters()["width"] = scale * view.width()
    drawn: QImage = exporter.export(toBytes=True)
    return drawn


def svg_of(view: pyqtgraph.GraphicsView, title: str, vector_items: Sequence[pyqtgraph.GraphicsObject] = ()) -> bytes:
    """The chart as SVG; `vector_items` draw pixels on the screen, and lines here."""
    # Not by pyqtgraph's SVGExporter: 0.14.0 fails on Qt's closed paths (pyqtgraph issue 3495).
    drawn = QByteArray()
    into = QBuffer(drawn)
    generator = QSvgGenerator()
    generator.setOutputDevice(into)
    generator.setTitle(title)
    generator.setSize(view.size())
    generator.setViewBox(view.rect())
    painter = QPainter(generator)
    for item in vector_items:
        item.setExportMode(True, {"painter": painter})
    painter.fillRect(view.rect(), view.backgroundBrush())
    view.scene().render(painter, QRectF(view.rect()), QRectF(view.rect()))
    for item in vector_items:
        item.setExportMode(False)
    painter.end()
    return bytes(drawn.data())
