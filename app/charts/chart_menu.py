"""Menu of a chart: saves and copies it as a picture, a drawing or a table, sets its scale, hides its card."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRect, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageWriter, QPaintDevice, QPainter, QTextDocument
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu, QMessageBox, QWidget

from app.plots.chart import Chart
from app.plots.drawing import Area, Layer
from app.run_data.pyramid import Floats
from app.style.palette import plot_colours

TITLE_HEIGHT: Final = 30
# Pixels of a saved picture for one on the screen.
PICTURE_SCALE: Final = 2
# Of a value range: its ends, and its width as a share of them.
FARTHEST: Final = 1e100
NARROWEST: Final = 1e-9


def make_menu(chart: Chart, title: str, parent: QWidget, hide: Callable[[], object]) -> QMenu:
    """The chart's menu; `hide` hides its card."""
    menu = QMenu(parent)
    clipboard = QGuiApplication.clipboard()
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("Save &picture…", lambda: save_as(parent, title, "Pictures (*.png)", png(picture(chart, title)))),
        ("Save &drawing (SVG)…", lambda: save_as(parent, title, "Drawings (*.svg)", drawing(chart, title))),
        ("Save &values…", lambda: save_as(parent, title, "Tables (*.csv)", values(chart, ",").encode())),
        ("&Copy picture", lambda: clipboard.setImage(picture(chart, title))),
        ("Copy va&lues", lambda: clipboard.setText(values(chart, "\t"))),
    )
    for text, act in steps:
        action = menu.addAction(text)
        action.triggered.connect(lambda _on=False, act=act: act())
        action.setEnabled(chart.scale is not None)
    menu.addSeparator()
    log = menu.addAction("Lo&garithmic axis")
    log.setCheckable(True)
    log.setChecked(chart.is_log)
    log.setEnabled(chart.source.fixed_scale is None)
    log.triggered.connect(chart.set_log)
    reach = menu.addAction("Value &range…")
    reach.setEnabled(chart.scale is not None)
    reach.triggered.connect(lambda: ask_range(chart, parent))
    menu.addAction("Reset &zoom").triggered.connect(chart.fit)
    menu.addSeparator()
    menu.addAction("&Hide this card").triggered.connect(lambda: hide())
    return menu


def pop_up(menu: QMenu, place: QPoint) -> None:
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(place)


def picture(chart: Chart, title: str) -> QImage:
    width, height = chart.width(), chart.height()
    drawn = QImage(PICTURE_SCALE * width, PICTURE_SCALE * (height + TITLE_HEIGHT), QImage.Format.Format_RGB32)
    drawn.setDevicePixelRatio(PICTURE_SCALE)
    _draw(drawn, chart, title)
    return drawn


def drawing(chart: Chart, title: str) -> bytes:
    """The chart as SVG, with every curve as lines."""
    # Not by pyqtgraph's exporter: 0.14.0 fails on Qt's closed paths (pyqtgraph issue 3495).
    buffer = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setTitle(title)
    generator.setViewBox(QRect(0, 0, chart.width(), chart.height() + TITLE_HEIGHT))
    generator.setSize(generator.viewBox().size())
    _draw(generator, chart, title)
    return bytes(buffer.data().data())


def _draw(device: QPaintDevice, chart: Chart, title: str) -> None:
    """The chart under its title and the names of its curves."""
    colours = plot_colours(chart.palette())
    names: dict[str, QColor] = {reading.label: reading.colour for reading in chart.readings() if reading.colour}
    signs = [f"<span style='color:{c.name()}'>■</span> {html.escape(name)}" for name, c in names.items() if name]
    head = QTextDocument()
    head.setDefaultFont(chart.font())
    head.setDefaultStyleSheet(f"p {{ color: {colours.text.name()} }}")
    head.setHtml(f"<p>{'&nbsp; '.join([f'<b>{html.escape(title)}</b>', *signs])}</p>")
    area = QRectF(0, TITLE_HEIGHT, chart.width(), chart.height())
    painter = QPainter(device)
    painter.fillRect(QRectF(0, 0, area.width(), area.bottom()), colours.ground)
    head.drawContents(painter, QRectF(0, 0, area.width(), TITLE_HEIGHT))
    chart.render(painter, area, chart.viewport().rect())
    painter.end()


def png(image: QImage) -> bytes:
    buffer = QBuffer()
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def values(chart: Chart, separator: str) -> str:
    """The drawn values as a table: a row for each position, a column for each curve.

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


def _columns(layer: Layer) -> Iterator[tuple[str, Floats, Floats]]:
    if isinstance(layer, Area):
        yield layer.label, layer.x, layer.high - layer.low
    elif layer.low is layer.high:
        yield layer.label, layer.x, layer.low
    else:
        yield f"{layer.label} lowest", layer.x, layer.low
        yield f"{layer.label} highest", layer.x, layer.high


def ask_range(chart: Chart, parent: QWidget) -> None:
    """Asks from which value to which the chart reaches."""
    scale = chart.scale
    ends = (scale.low, scale.high) if scale is not None else (0.0, 1.0)
    shown = " ".join(f"{10.0**end if chart.is_log else end:.4g}" for end in ends)
    text, is_given = QInputDialog.getText(parent, "Value range", "Lowest and highest value:", text=shown)
    try:
        low, high = (float(part.replace(",", ".")) for part in text.replace(";", " ").split())
        # Closer together, or farther apart, than that, floating point leaves nothing to draw.
        is_range = max(abs(low), abs(high)) < FARTHEST and high - low > max(NARROWEST * abs(high), 1 / FARTHEST)
        is_range &= low > 0 or not chart.is_log
    except ValueError:
        low, high, is_range = 0.0, 0.0, False
    if is_given and is_range:
        chart.show_values(low, high)
    elif is_given:
        above = " Both must be above zero on a logarithmic axis." if chart.is_log else ""
        QMessageBox.warning(parent, "No value range", f"Enter two numbers, the lower one first, such as 0 2.5.{above}")


def save_as(parent: QWidget, title: str, kind: str, data: bytes) -> None:
    """Asks for a file and writes to it; says why that cannot be done. `kind` is a file dialog's, with one ending."""
    name = re.sub(r"\W+", "-", title.lower()).strip("-") or "chart"
    ending = kind[kind.index("*") + 1 : -1]
    chosen, _ = QFileDialog.getSaveFileName(parent, f"Save {title}", f"{name}{ending}", kind)
    if not chosen:
        return
    try:
        Path(chosen).write_bytes(data)
    except OSError as error:
        cause = f"{chosen} cannot be written: {error.strerror or error}."
        QMessageBox.warning(parent, "The file was not saved", f"{cause}\n\nChoose another folder.")
