"""Legend in a card's head: each curve with its value; a click hides or shows it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plots.drawing import draw_sign, hairline
from app.plots.source import Reading
from app.style.fonts import tabular
from app.style.palette import PlotColours, plot_colours

SWATCH: Final = 8
GAP: Final = 4
ENTRY_GAP: Final = 14
# The widest label: first as it is, then elided in its middle, then none; the first that fits is taken.
LABEL_WIDTHS: Final = (1e4, 128.0, 96.0, 80.0, 68.0, 56.0, 0.0)
# Of a label that no colour stands for: "GPU 12" in full.
LEAST_LABEL: Final = 56.0


class Readout(QWidget):
    """Values in a row. Each keeps the widest place it ever needed; what does not fit is counted: "+ 3".

    By keyboard: left and right choose an entry, Space hides or shows it, Enter leaves it alone.

    Signals:
        entry_chosen: ``(key, alone)``: hide or show this curve, or show it alone.
        tab_stop_changed: Tab stops here from now on, or no longer.
    """

    entry_chosen = Signal(str, bool)
    tab_stop_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[Reading] = []
        self._widths: dict[tuple[int, str], float] = {}
        self._boxes: list[tuple[QRectF, str]] = []
        self._chosen = 0
        self._needs = 80
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setMouseTracking(True)

    def show_readings(self, readings: list[Reading]) -> bool:
        """Shows values; returns whether they need other room than those before."""
        if readings == self.readings:
            return False
        names = [reading.label for reading in self.readings]
        self.readings = readings
        texts = [f"{r.label} {'hidden' if r.is_hidden else r.text}".strip() for r in readings]
        can_choose = len(self.keys()) > 1
        policy = Qt.FocusPolicy.TabFocus if can_choose else Qt.FocusPolicy.NoFocus
        if policy != self.focusPolicy():
            self.setFocusPolicy(policy)
            self.tab_stop_changed.emit()
        self.setAccessibleName("; ".join(texts))
        hint = ["Click a name to hide or show its curve, Alt+click to show it alone."] if can_choose else []
        self.setToolTip("\n".join([*texts, *hint]))
        self.setAccessibleDescription("Space hides or shows a curve, Enter shows it alone" if can_choose else "")
        needed = round(self._needed(LABEL_WIDTHS[0]))
        is_other = needed != self._needs or names != [reading.label for reading in readings]
        if is_other:
            self._needs = needed
            self.updateGeometry()
        self.update()
        return is_other

    def keys(self) -> list[str]:
        return [reading.key for reading in self.readings if reading.key]

    def forget_widths(self) -> None:
        self._widths.clear()

    def least_width(self) -> int:
        """Width of all values without their names."""
        return round(self._needed(LABEL_WIDTHS[-1])) + 1 if self.readings else 0

    def sizeHint(self) -> QSize:
        return QSize(self._needs, int(QFontMetricsF(self.font()).height()) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    # --- drawing -----------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(tabular(self.font()))
        metrics, colours = QFontMetricsF(painter.font()), plot_colours(self.palette())
        right, count = float(self.width()), len(self.readings)
        self._boxes = []
        for widest in LABEL_WIDTHS:
            needed = self._needed(widest, metrics)
            if needed <= right:
                break
        x = max(0.0, right - needed)
        for number, reading in enumerate(self.readings):
            width, value_width = self._measure(number, reading, metrics, widest)
            more = f"+ {count - number}"
            needs_more = number < count - 1 and x + width + ENTRY_GAP + metrics.horizontalAdvance("+ 00") > right
            if x + width > right + 1 or (needs_more and needed > right):
                painter.setPen(colours.muted)
                if x + metrics.horizontalAdvance(more) <= right:
                    painter.drawText(QRectF(x, 0, right - x, self.height()), Qt.AlignmentFlag.AlignVCenter, more)
                break
            box = QRectF(x, 0, width, self.height())
            self._boxes.append((box, reading.key))
            self._draw_entry(painter, reading, metrics, box, value_width, widest, colours)
            x += width + ENTRY_GAP
        self._draw_focus(painter)

    def _needed(self, widest: float, metrics: QFontMetricsF | None = None) -> float:
        metrics = metrics or QFontMetricsF(tabular(self.font()))
        widths = [self._measure(*entry, metrics, widest)[0] for entry in enumerate(self.readings)]
        return sum(widths) + ENTRY_GAP * (len(widths) - 1)

    def _measure(self, number: int, reading: Reading, metrics: QFontMetricsF, widest: float) -> tuple[float, float]:
        key = (number, reading.label)
        value_width = max(self._widths.get(key, 0.0), metrics.horizontalAdvance(reading.text))
        self._widths[key] = value_width
        label = self._label_width(reading, metrics, widest)
        swatch = SWATCH + GAP if reading.colour is not None else 0.0
        return swatch + (label + GAP if label else 0.0) + value_width, value_width

    def _label_width(self, reading: Reading, metrics: QFontMetricsF, widest: float) -> float:
        return min(metrics.horizontalAdvance(reading.label), max(widest, LEAST_LABEL if reading.keeps_label else 0.0))

    def _draw_entry(
        self,
        painter: QPainter,
        reading: Reading,
        metrics: QFontMetricsF,
        box: QRectF,
        value_width: float,
        widest: float,
        colours: PlotColours,
    ) -> None:
        x = box.left()
        if reading.colour is not None:
            colour = colours.grid if reading.is_hidden else reading.colour
            draw_sign(painter, QRectF(x, (self.height() - SWATCH) / 2, SWATCH, SWATCH), colour, reading.is_ring)
            x += SWATCH + GAP
        if width := self._label_width(reading, metrics, widest):
            label = metrics.elidedText(reading.label, Qt.TextElideMode.ElideMiddle, width + 1)
            painter.setPen(colours.muted)
            place = QRectF(x, 0, width + 1, self.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, label)
            x += width + GAP
        painter.setPen(colours.muted if reading.is_hidden else colours.text)
        place = QRectF(x, 0, value_width + 1, self.height())
        text = "–" if reading.is_hidden else reading.text
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)

    def _draw_focus(self, painter: QPainter) -> None:
        chosen = self._chosen_key()
        for box, key in self._boxes:
            if self.hasFocus() and key and key == chosen:
                painter.setPen(hairline(self.palette().color(QPalette.ColorRole.Highlight)))
                painter.drawRect(box.adjusted(-3, 1, 2, -1))

    # --- what happens ------------------------------------------------------------------------------------

    def _chosen_key(self) -> str:
        keys = self.keys()
        return keys[min(self._chosen, len(keys) - 1)] if keys else ""

    def _key_at(self, event: QMouseEvent) -> str:
        found = next((key for box, key in self._boxes if box.contains(event.position())), "")
        return found if len(self.keys()) > 1 else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event)
        if key and event.button() == Qt.MouseButton.LeftButton:
            self.entry_chosen.emit(key, bool(event.modifiers() & Qt.KeyboardModifier.AltModifier))
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hand = bool(self._key_at(event)) and not event.buttons()
        self.setCursor(Qt.CursorShape.PointingHandCursor if hand else Qt.CursorShape.ArrowCursor)
        event.ignore()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, keys = event.key(), self.keys()
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and keys:
            self._chosen = max(0, min(len(keys) - 1, self._chosen + (1 if key == Qt.Key.Key_Right else -1)))
            self.update()
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter) and keys:
            self.entry_chosen.emit(self._chosen_key(), key != Qt.Key.Key_Space)
        else:
            event.ignore()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._widths.clear()
        super().changeEvent(event)
