"""A chart outside the window: as a picture, a drawing, a table."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyqtgraph
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor, QImage, QImageWriter

from app.run_data.pyramid import Floats
from app.views.plots.chart import Chart
from app.views.plots.drawing import Area, Layer
from app.views.plots.export_view import png_of, svg_of
from app.views.plots.time_axis import TimeAxis
from app.views.style.palette import plot_colours
from core.errors import RankdeckError

TITLE_HEIGHT: Final = 30
# Pixels of a saved picture for one on the screen.
PICTURE_SCALE: Final = 2


class Drawn(Protocol):
    """What can be saved as a table."""

    @property
    def layers(self) -> list[Layer]:
        """What is drawn."""

    @property
    def time_axis(self) -> TimeAxis:
        """Over which axis."""


def picture(chart: Chart, title: str) -> QImage:
    """The chart with its title and the names of its curves."""
    with _titled(chart, title):
        return png_of(chart, PICTURE_SCALE)


def save_picture(chart: Chart, title: str, path: Path) -> None:
    """Writes a PNG.

    Raises:
        RankdeckError: It cannot be written.
    """
    save_image(picture(chart, title), path)


def save_image(image: QImage, path: Path) -> None:
    """Writes a PNG.

    Raises:
        RankdeckError: It cannot be written.
    """
    writer = QImageWriter(str(path), QByteArray(b"png"))
    if not writer.write(image):
        raise _cannot_write(path, f"{writer.errorString()}.")


def save_drawing(chart: Chart, title: str, path: Path) -> None:
    """Writes an SVG, with every curve as lines.

    Raises:
        RankdeckError: It cannot be written.
    """
    with _titled(chart, title):
        drawn = svg_of(chart, title, (chart.curves, chart.curves.rings))
    try:
        path.write_bytes(drawn)
    except OSError as error:
        raise _cannot_write(path, f"{error.strerror or error}.") from None


def save_values(chart: Drawn, path: Path) -> None:
    """Writes a CSV of what is drawn.

    Raises:
        RankdeckError: It cannot be written.
    """
    try:
        path.write_text(values(chart, ","), encoding="utf-8", newline="")
    except OSError as error:
        raise _cannot_write(path, f"{error.strerror or error}.") from None


def values(chart: Drawn, separator: str) -> str:
    """What is drawn as a table: a line for each position, a column for each curve.

    Where a pixel stands for several steps, a curve has two columns, with the lowest and the highest of them.
    """
    is_step = chart.time_axis.axis == "step"
    start = 0.0 if is_step else chart.time_axis.extent[0]
    columns = [column for layer in chart.layers for column in _columns(layer)]
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


def _cannot_write(path: Path, cause: str) -> RankdeckError:
    return RankdeckError(
        f"{path} cannot be written: {cause}", "Choose another folder.", title="The chart was not saved"
    )
