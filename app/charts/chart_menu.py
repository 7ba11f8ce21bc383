"""Menu of a chart: saves and copies its picture and the drawn values, sets its scale, hides its card."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageWriter, QPainter, QTextDocument
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

from app.plots.chart import Chart
from app.plots.drawing import Area, Layer
from app.run_data.pyramid import Floats
from app.style.palette import plot_colours

TITLE_HEIGHT: Final = 30
# Pixels of a saved picture for one on the screen.
PICTURE_SCALE: Final = 2


def make_menu(chart: Chart, title: str, parent: QWidget, hide: Callable[[], object]) -> QMenu:
    """The chart's menu; `hide` hides its card."""
    menu = QMenu(parent)
    clipboard = QGuiApplication.clipboard()
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("Save &picture…", lambda: save_as(parent, title, "Pictures (*.png)", png(picture(chart, title)))),
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
    menu.addAction("Reset &zoom").triggered.connect(chart.fit)
    menu.addSeparator()
    menu.addAction("&Hide this card").triggered.connect(lambda: hide())
    return menu


def pop_up(menu: QMenu, place: QPoint) -> None:
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(place)


def picture(chart: Chart, title: str) -> QImage:
    colours = plot_colours(chart.palette())
    names: dict[str, QColor] = {reading.label: reading.colour for reading in chart.readings() if reading.colour}
    signs = [f"<span style='color:{c.name()}'>■</span> {html.escape(name)}" for name, c in names.items() if name]
    head = QTextDocument()
    head.setDefaultFont(chart.font())
    head.setDefaultStyleSheet(f"p {{ color: {colours.text.name()} }}")
    head.setHtml(f"<p>{'&nbsp; '.join([f'<b>{html.escape(title)}</b>', *signs])}</p>")
    width, height = chart.width(), chart.height()
    drawn = QImage(PICTURE_SCALE * width, PICTURE_SCALE * (height + TITLE_HEIGHT), QImage.Format.Format_RGB32)
    drawn.setDevicePixelRatio(PICTURE_SCALE)
    drawn.fill(colours.ground)
    painter = QPainter(drawn)
    head.drawContents(painter, QRectF(0, 0, width, TITLE_HEIGHT))
    chart.render(painter, QRectF(0, TITLE_HEIGHT, width, height), chart.viewport().rect())
    painter.end()
    return drawn


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
