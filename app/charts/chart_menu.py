"""Menu of a chart: its picture, its scale, and hiding its card."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageWriter, QPainter, QTextDocument
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

from app.plots.chart import Chart
from app.style.palette import plot_colours

TITLE_HEIGHT: Final = 30
# Pixels of a saved picture for one on the screen.
PICTURE_SCALE: Final = 2


def make_menu(chart: Chart, title: str, parent: QWidget, hide: Callable[[], object]) -> QMenu:
    """The chart's menu; `hide` hides its card."""
    menu = QMenu(parent)
    save, copy = menu.addAction("Save &picture…"), menu.addAction("&Copy picture")
    save.triggered.connect(lambda: save_picture(chart, title, parent))
    copy.triggered.connect(lambda: QGuiApplication.clipboard().setImage(picture(chart, title)))
    for action in (save, copy):
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


def save_picture(chart: Chart, title: str, parent: QWidget) -> None:
    """Asks for a file and writes the picture to it; says why that cannot be done."""
    name = re.sub(r"\W+", "-", title.lower()).strip("-") or "chart"
    chosen, _ = QFileDialog.getSaveFileName(parent, f"Save {title}", f"{name}.png", "Pictures (*.png)")
    if not chosen:
        return
    buffer = QBuffer()
    QImageWriter(buffer, QByteArray(b"png")).write(picture(chart, title))
    try:
        Path(chosen).write_bytes(bytes(buffer.data().data()))
    except OSError as error:
        cause = f"{chosen} cannot be written: {error.strerror or error}."
        QMessageBox.warning(parent, "The picture was not saved", f"{cause}\n\nChoose another folder.")
