"""Table beside the crosshair: where it stands, and each curve's smoothed and reported value there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.views.plots.drawing import draw_sign
from app.views.plots.source import Reading
from app.views.style.fonts import tabular
from app.views.style.palette import plot_colours

PADDING: Final = 8.0
GAP: Final = 12.0
SIGN: Final = 8.0
CORNER: Final = 4.0
AWAY: Final = 12.0
# More would hide the curves; the last row then counts the others.
MOST_ROWS: Final = 12
# Head, names of the columns, the count of others, and the padding.
LINES_BESIDE: Final = 4


class CrosshairTable(QWidget):
    """Shown by the chart that is under the mouse. It takes no clicks."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.head = ""
        self.rows: list[Reading] = []
        self._left_out = 0
        self.hide()

    def show_readings(self, head: str, readings: Sequence[Reading], at: QPointF, area: QRectF) -> None:
        """Shows values at a place.

        Args:
            head: Step and time.
            readings: A row each; those without a label (sums) stand in the chart's own head.
            at: The crosshair, in the parent's pixels.
            area: Where curves are drawn; the table stays within it while it fits.
        """
        rows = [reading for reading in readings if reading.label]
        fitting = int(area.bottom() / self._line(QFontMetricsF(tabular(self.font())))) - LINES_BESIDE
        most = MOST_ROWS if len(rows) <= fitting else max(1, min(MOST_ROWS, fitting))
        self.head, self.rows = head, rows[:most]
        self._left_out = len(rows) - len(self.rows)
        self.resize(self._needed())
        right = at.x() + AWAY
        x = right if right + self.width() <= area.right() else at.x() - AWAY - self.width()
        y = min(max(area.top() + 4, at.y() - self.height() / 2), max(area.top() + 4, area.bottom() - self.height() - 4))
        self.move(round(max(area.left(), x)), round(y))
        self.setVisible(bool(rows))
        self.update()

    def _columns(self, metrics: QFontMetricsF) -> tuple[float, float, float]:
        """The widths of names, smoothed and reported values; smoothed is 0 where no curve has a bold line."""
        label = max((metrics.horizontalAdvance(r.label) for r in self.rows), default=0.0)
        smoothed = max((metrics.horizontalAdvance(r.smoothed) for r in self.rows), default=0.0)
        value = max((metrics.horizontalAdvance(_value(r)) for r in self.rows), default=0.0)
        if not smoothed:
            return label, 0.0, value
        return (
            label,
            max(smoothed, metrics.horizontalAdvance("smoothed")),
            max(value, metrics.horizontalAdvance("value")),
        )

    def _needed(self) -> QSize:
        metrics = QFontMetricsF(tabular(self.font()))
        label, smoothed, value = self._columns(metrics)
        cells = SIGN + 6 + label + GAP + value + (GAP + smoothed if smoothed else 0.0)
        width = max(cells, QFontMetricsF(self._bold()).horizontalAdvance(self.head))
        lines = 1 + len(self.rows) + bool(smoothed) + bool(self._left_out)
        return QSize(round(width + 2 * PADDING), round(lines * self._line(metrics) + 2 * PADDING - 4))

    def _bold(self) -> QFont:
        font = tabular(self.font())
        font.setBold(True)
        return font

    def _line(self, metrics: QFontMetricsF) -> float:
        return metrics.height() + 3

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = plot_colours(self.palette())
        painter.setPen(colours.muted)
        painter.setBrush(colours.ground)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), CORNER, CORNER)
        painter.setFont(self._bold())
        painter.setPen(colours.text)
        metrics = QFontMetricsF(tabular(self.font()))
        line, y = self._line(metrics), PADDING - 2
        painter.drawText(QRectF(PADDING, y, self.width() - 2 * PADDING, line), Qt.AlignmentFlag.AlignVCenter, self.head)
        painter.setFont(tabular(self.font()))
        _label, smoothed, value = self._columns(metrics)
        right = self.width() - PADDING
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight

        def draw_values(first: str, second: str) -> None:
            painter.drawText(QRectF(right - value, y, value, line), flags, second)
            painter.drawText(QRectF(right - value - GAP - smoothed, y, smoothed, line), flags, first)

        if smoothed:
            y += line
            painter.setPen(colours.muted)
            draw_values("smoothed", "value")
        for row in self.rows:
            y += line
            if row.colour is not None:
                draw_sign(painter, QRectF(PADDING, y + (line - SIGN) / 2, SIGN, SIGN), row.colour, row.is_ring)
            painter.setPen(colours.text)
            left = PADDING + SIGN + 6
            painter.drawText(QRectF(left, y, right - left, line), Qt.AlignmentFlag.AlignVCenter, row.label)
            draw_values(row.smoothed, _value(row))
        if self._left_out:
            painter.setPen(colours.muted)
            rest = QRectF(PADDING, y + line, self.width(), line)
            painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, f"+ {self._left_out} more")


def _value(reading: Reading) -> str:
    return f"{reading.text} ★" if reading.is_best else reading.text
