"""A chart outside the window: as a picture, a drawing, a table."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QBuffer, QByteArray, QRectF
from PySide6.QtGui import QColor, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.plots.chart import Chart
from app.plots.drawing import Area, Layer
from app.plots.time_axis import TimeAxis
from app.run_data.pyramid import Floats
from app.style.palette import plot_colours
from core.errors import RankdeckError, full_stop

TITLE_HEIGHT: Final = 30
# Pixels of a saved picture for one on the screen.
PICTURE_SCALE: Final = 2
KINDS: Final = {"png": "Pictures (*.png)", "svg": "Drawings (*.svg)", "csv": "Tables (*.csv)"}


def picture(chart: Chart, title: str) -> QImage:
    """The chart with its title and the names of its curves."""
    with _titled(chart, title):
        return png_of(chart, PICTURE_SCALE)


def drawing(chart: Chart, title: str) -> bytes:
    """The same as SVG, with every curve as lines."""
    with _titled(chart, title):
        return svg_of(chart, title, (chart.curves, chart.curves.rings))


def save_as(parent: QWidget, title: str, name: str, make: Callable[[], QImage | bytes | str]) -> None:
    """Asks for a file and writes to it; says why that cannot be done.

    Args:
        parent: Owns the questions.
        title: What is saved.
        name: Of the file that is proposed; its end is one of `KINDS`.
        make: Gives what is written.
    """
    chosen, _ = QFileDialog.getSaveFileName(parent, f"Save {title}", name, KINDS[name.rpartition(".")[2]])
    if chosen:
        try:
            save(Path(chosen), make())
        except RankdeckError as error:
            QMessageBox.warning(parent, error.title, f"{full_stop(error.cause)}\n\n{error.window_step}")


def save(path: Path, made: QImage | bytes | str) -> None:
    """Writes a file.

    Raises:
        RankdeckError: It cannot be written.
    """
    if isinstance(made, QImage):
        buffer = QBuffer()
        QImageWriter(buffer, QByteArray(b"png")).write(made)
        made = bytes(buffer.data().data())
    try:
        path.write_bytes(made.encode() if isinstance(made, str) else made)
    except OSError as error:
        cause = f"{path} cannot be written: {error.strerror or error}."
        raise RankdeckError(cause, "Choose another folder.", title="The file was not saved") from None


def values(layers: Sequence[Layer], time_axis: TimeAxis, separator: str) -> str:
    """Layers as a table: a line for each position, a column for each curve.

    Where a pixel stands for several steps, a curve has two columns, with the lowest and the highest of them.
    """
    is_step = time_axis.axis == "step"
    start = 0.0 if is_step else time_axis.extent[0]
    columns = [column for layer in layers for column in _columns(layer)]
    places = sorted({place for _, x, _ in columns for place in x[~np.isnan(x)].tolist()})
    cells = [dict(zip(x.tolist(), y.tolist(), strict=True)) for _, x, y in columns]
    text = io.StringIO()
    table = csv.writer(text, delimiter=separator, lineterminator="\n")
    table.writerow(["step" if is_step else "seconds", *(name for name, _, _ in columns)])
    for place in places:
        found = (cell.get(place) for cell in cells)
        row = ("" if value is None or value != value else f"{value:.10g}" for value in found)
        table.writerow([f"{place - start:.10g}", *row])
    return text.getvalue()


def _columns(layer: Layer) -> list[tuple[str, Floats, Floats]]:
    if isinstance(layer, Area):
        return [(layer.label, layer.x, layer.high - layer.low)]
    if layer.low is layer.high:
        return [(layer.label, layer.x, layer.low)]
    return [(f"{layer.label} lowest", layer.x, layer.low), (f"{layer.label} highest", layer.x, layer.high)]


@contextmanager
def _titled(chart: Chart, title: str) -> Iterator[None]:
    """Puts the title and the curves' names over the plot while it is exported."""
    colours = plot_colours(chart.palette())
    names: dict[str, QColor] = {reading.label: reading.colour for reading in chart.readings() if reading.colour}
    signs = [f"<span style='color:{c.name()}'>■</span> {html.escape(name)}" for name, c in names.items() if name]
    text = "&nbsp; ".join([f"<b>{html.escape(title)}</b>", *signs])
    label = pyqtgraph.LabelItem(text, size="11pt", color=colours.text.name())
    label.setMaximumHeight(TITLE_HEIGHT)
    chart.centralLayout.addItem(label, 0, 1)
    chart.centralLayout.activate()
    try:
        yield
    finally:
        chart.centralLayout.removeItem(label)
        chart.scene().removeItem(label)
        chart.centralLayout.activate()


def png_of(view: pyqtgraph.GraphicsView, scale: int) -> QImage:
    """The chart as a picture, with `scale` pixels for one on the screen."""
    from pyqtgraph.exporters import ImageExporter

    exporter = ImageExporter(view.scene())
    exporter.parameters()["width"] = scale * view.width()
    drawn: QImage = exporter.export(toBytes=True)
    return drawn


def svg_of(view: pyqtgraph.GraphicsView, title: str, vector_items: Sequence[pyqtgraph.GraphicsObject] = ()) -> bytes:
    """The chart as SVG.

    Args:
        view: What is drawn.
        title: Of the file.
        vector_items: Those of ours that draw pixels on the screen, and lines here.
    """
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
