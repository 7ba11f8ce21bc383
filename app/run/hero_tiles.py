"""Hero tiles: the figures of the run's header, readable from two metres away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.fonts import tabular
from app.style.palette import plot_colours
from app.style.tones import muted, tone
from app.widgets.build import lay_row
from app.widgets.card import CORNER

if TYPE_CHECKING:
    from app.run.hero_figures import HeroFigure

SIZES: Final = (1.5, 1.3, 1.15, 1.0)
MARGIN: Final = 12
GAP: Final = 8
LEAST_WIDTH: Final = 96
# Before what may be left out of a trend: "best at 220" becomes "best".
_PART_SIGNS: Final = (" · ", " at ", " ↓ ", " ↑ ")
_TONES: Final = {"better": "success", "worse": "warning"}


def shortened(note: str, fits: Callable[[str], bool]) -> str:
    """Drop parts from the end of a note until it fits; the tooltip has all of it."""
    while note and not fits(note):
        note = note[: max(0, *(note.rfind(sign) for sign in _PART_SIGNS))]
    return note


class HeroTile(QWidget):
    """One figure: its name over its value, and as much of the trend beside it as there is room for."""

    def __init__(self, figure: HeroFigure) -> None:
        super().__init__()
        self.figure = figure
        self._size = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._name()

    def show_figure(self, figure: HeroFigure) -> None:
        if figure != self.figure:
            self.figure = figure
            self._name()
            self.update()

    def _name(self) -> None:
        figure = self.figure
        text = " ".join(part for part in (f"{figure.label}: {figure.value}", figure.note) if part)
        self.setAccessibleName(text)
        self.setToolTip("\n".join(part for part in (text, figure.tip) if part))

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height() + QFontMetrics(self._value_font(SIZES[0])).height()
        return QSize(160, height + 16)

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_WIDTH, self.sizeHint().height())

    def fitting_size(self) -> int:
        """Return the index of the first of `SIZES` that lets the value fit, else of the last."""
        room = self.width() - 2 * MARGIN
        for place, size in enumerate(SIZES):
            if QFontMetrics(self._value_font(size)).horizontalAdvance(self.figure.value) <= room:
                return place
        return len(SIZES) - 1

    def set_size(self, place: int) -> None:
        if place != self._size:
            self._size = place
            self.update()

    def _value_font(self, size: float) -> QFont:
        font = tabular(self.font())
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * size)
        return font

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, figure = self.palette(), self.figure
        painter.setPen(plot_colours(palette).grid)
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), CORNER, CORNER)
        room = self.width() - 2 * MARGIN
        value_font = self._value_font(SIZES[self._size])
        small, large = self.fontMetrics(), QFontMetrics(value_font)
        top = (self.height() - small.height() - large.height()) // 2
        value = large.elidedText(figure.value, Qt.TextElideMode.ElideRight, room)
        wide = large.horizontalAdvance(value)
        beside = QRect(MARGIN + wide + GAP, top + small.height(), room - wide - GAP, large.height())
        self._paint_note(painter, beside)
        painter.setPen(muted(palette))
        painter.setFont(self.font())
        name = small.elidedText(figure.label, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(MARGIN, top, room, small.height()), Qt.AlignmentFlag.AlignVCenter, name)
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        painter.setFont(value_font)
        line = QRect(MARGIN, top + small.height(), room, large.height())
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, value)

    def _paint_note(self, painter: QPainter, box: QRect) -> None:
        font = tabular(self.font())
        metrics = QFontMetrics(font)
        text = shortened(self.figure.note, lambda note: metrics.horizontalAdvance(note) <= box.width())
        name = _TONES.get(self.figure.trend)
        painter.setPen(tone(self.palette(), name) if name is not None else muted(self.palette()))
        painter.setFont(font)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)


class HeroTiles(QWidget):
    """Up to five tiles of one width, in one row."""

    def __init__(self) -> None:
        super().__init__()
        self.tiles: list[HeroTile] = []
        self._row = lay_row(self, spacing=8)

    def show_figures(self, figures: Sequence[HeroFigure]) -> None:
        while len(self.tiles) < len(figures):
            tile = HeroTile(figures[len(self.tiles)])
            self.tiles.append(tile)
            self._row.addWidget(tile, 1)
        for number, tile in enumerate(self.tiles):
            if number < len(figures):
                tile.show_figure(figures[number])
            tile.setVisible(number < len(figures))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        shown = [tile for tile in self.tiles if not tile.isHidden()]
        size = max((tile.fitting_size() for tile in shown), default=0)
        for tile in shown:
            tile.set_size(size)
