"""Table beside the crosshair: where it stands, and each curve's smoothed and reported value there."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.plots.source import Reading
from app.style.fonts import tabular
from app.style.palette import plot_colours

AWAY: Final = 12.0
EDGE: Final = 4.0
# More would hide the curves; the last row then counts the others.
MOST_ROWS: Final = 12
# Head, names of the columns, the count of others, and the padding.
LINES_BESIDE: Final = 4
LINE_GAP: Final = 4
STYLE: Final = "background: {ground}; border: 1px solid {edge}; border-radius: 4px; padding: 4px 6px;"


class CrosshairTable(QLabel):
    """Shown by the chart that is under the mouse. It takes no clicks."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setFont(tabular(self.font()))
        self.head = ""
        self.rows: list[Reading] = []
        self.hide()

    def show_readings(self, head: str, readings: Sequence[Reading], at: QPointF, area: QRectF) -> None:
        rows = [reading for reading in readings if reading.label]
        fitting = int(area.bottom() / (self.fontMetrics().height() + LINE_GAP)) - LINES_BESIDE
        most = MOST_ROWS if len(rows) <= fitting else max(1, min(MOST_ROWS, fitting))
        self.head, self.rows = head, rows[:most]
        colours = plot_colours(self.palette())
        style = STYLE.format(ground=colours.ground.name(), edge=colours.muted.name())
        if style != self.styleSheet():  # setting it costs more than all the rest
            self.setStyleSheet(style)
        self.setText(self._html(len(rows) - len(self.rows), colours.muted.name()))
        self.adjustSize()
        right = at.x() + AWAY
        x = right if right + self.width() <= area.right() else at.x() - AWAY - self.width()
        top = area.top() + EDGE
        y = min(max(top, at.y() - self.height() / 2), max(top, area.bottom() - self.height() - EDGE))
        self.move(round(max(area.left(), x)), round(y))
        self.setVisible(bool(rows))

    def _html(self, left_out: int, muted: str) -> str:
        has_lines = any(row.smoothed for row in self.rows)
        names = ("", "smoothed", "value") if has_lines else ()
        lines = [f"<b>{escape(self.head)}</b><table cellspacing='0' cellpadding='1' width='100%'>"]
        if names:
            cells = "".join(f"<td align='right' style='color:{muted}'>&nbsp;&nbsp;{name}</td>" for name in names)
            lines.append(f"<tr>{cells}</tr>")
        for row in self.rows:
            colour = muted if row.colour is None else row.colour.name()
            sign = f"<span style='color:{colour}'>{'○' if row.is_ring else '■'}</span>" if row.colour else ""
            values = [row.smoothed] * has_lines + [f"{row.text} ★" if row.is_best else row.text]
            cells = "".join(f"<td align='right' style='white-space:pre'>   {escape(value)}</td>" for value in values)
            lines.append(f"<tr><td style='white-space:pre'>{sign} {escape(row.label)}</td>{cells}</tr>")
        more = f"<span style='color:{muted}'>+ {left_out} more</span>" if left_out else ""
        return "".join([*lines, "</table>", more])
