"""One device of a run: its name and figures, how busy it was, and what is wrong with it."""

from __future__ import annotations

import html
from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.views.plots.device_strip import LEAST_HEIGHT, DeviceStrip
from app.views.style.fonts import tabular
from app.views.style.tones import tone
from app.views.widgets.build import muted_label
from app.views.widgets.tone_label import ToneLabel
from core.machine.devices import POWER_CAP, DeviceSample
from core.machine.devices.names import SEPARATOR as NAME_SEPARATOR

GAP: Final = 2
BESIDE: Final = 12
LEAST_STRIP: Final = 10
LEAST_BESIDE: Final = 64
LEAST_LETTERS: Final = 5
FIGURE_SPACE: Final = "\u2007"
NO_BREAK: Final = "\N{NO-BREAK SPACE}"
SEPARATOR: Final = 3 * NO_BREAK
# Samples for which a warning stays after its cause is gone.
WARNING_HELD: Final = 10


class DeviceTitle(QLabel):
    """A name that is elided in its middle where it has too little room: its end tells cards of one model apart."""

    def minimumSizeHint(self) -> QSize:
        least = min(self.sizeHint().width(), self.fontMetrics().averageCharWidth() * LEAST_LETTERS)
        return QSize(least, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, shown)


class DevicePlotRow(QWidget):
    """Name left, figures right, the strip below; where that is too high, all three side by side.

    The name is as long as there is room for: "GPU 0 · RTX 4090", or "GPU 0".

    Args:
        title: What the device is called.
        strip: Its plot.
        whose: Whose figures these are, where that is not the whole device.
        parent: Qt owner.

    Signals:
        widened: Its figures need more room than before.
    """

    widened = Signal()

    def __init__(self, title: str, strip: DeviceStrip, whose: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.strip = strip
        strip.setParent(self)
        self.title = DeviceTitle(title, self)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.whose: QLabel = muted_label(whose, wraps=False)
        self.whose.setParent(self)
        self.figures = QLabel(self)
        self.figures.setTextFormat(Qt.TextFormat.RichText)
        self.figures.setFont(tabular(self.figures.font()))
        self.figures.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.warning = ToneLabel(self)
        self._quiet = 0
        self._held = self._waits = ""
        self.figures_width = 0
        self._columns = (0, 0)
        self._name = title
        self._shown = ""
        self.text = ""
        strip.renewed.connect(self.read)
        strip.time_axis.cursor_changed.connect(self.read)

    def read(self) -> None:
        """Shows the figures at the crosshair, or the newest."""
        readings = self.strip.readings()
        parts = [_padded(reading.text) for reading in readings]
        self.text = SEPARATOR.join(f"{reading.label} {reading.text}".strip() for reading in readings)
        shown = [html.escape(part).replace(" ", NO_BREAK) for part in parts]
        if self.warning.text():
            colour = tone(QGuiApplication.palette(), "warning").name()
            if self._held:
                shown = [f"<span style='color:{colour}'>{part}</span>" if "°C" in part else part for part in shown]
            shown = [f"<span style='color:{colour}'>⚠</span>", *shown]
        text = SEPARATOR.join(shown)
        if text == self._shown:
            return
        self._shown = text
        self.figures.setText(text)
        self.figures.setAccessibleName(SEPARATOR.join(part for part in (self.text, self.warning.text()) if part))
        self.strip.setAccessibleDescription(self.figures.accessibleName())
        width = self.figures.sizeHint().width()
        if width > self.figures_width:
            self.figures_width = width
            self.widened.emit()

    def show_sample(self, sample: DeviceSample) -> None:
        """Says why the device's clock is held down, while it is."""
        worries = [reason for reason in sample.throttle_reasons if reason != POWER_CAP]
        self._quiet = 0 if worries else self._quiet + 1
        if worries:
            self._held = f"{worries[0][:1].upper()}{worries[0][1:]}."
        elif self._quiet > WARNING_HELD:
            self._held = ""
        self._warn()

    def show_waits(self, text: str) -> None:
        """Says for which device this one waits; empty where it does not."""
        self._waits = text
        self._warn()

    def forget_warning(self) -> None:
        """The run is over: what the device does now is not the run's."""
        self._held = self._waits = ""
        self._warn()

    def _warn(self) -> None:
        text = self._held or self._waits
        if text != self.warning.text():
            self.warning.say(text, "warning")
            self.figures.setToolTip(text)  # where the line has no room
            self.read()
            self._place()

    def head_height(self) -> int:
        return self.fontMetrics().height() + GAP

    def least_height(self) -> int:
        return self.head_height()

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.least_height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and hasattr(self, "_shown"):
            self._shown, self.figures_width = "", 0
            self.read()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def name_width(self, is_short: bool) -> int:
        return self.title.fontMetrics().horizontalAdvance(self._name_as(is_short)) + 4

    def room_for_name(self, figures: int) -> int:
        """What is left for the name beside figures of this width."""
        return self.width() - figures - BESIDE - self._is_low() * (LEAST_BESIDE + BESIDE)

    def align(self, is_short: bool, name: int, figures: int) -> None:
        """Gives name and figures the room that they have in all rows."""
        self.title.setText(self._name_as(is_short))
        self._columns = (max(0, min(name, self.room_for_name(figures))), figures)
        self._place()

    def _name_as(self, is_short: bool) -> str:
        return self._name.partition(NAME_SEPARATOR)[0] if is_short else self._name

    def _is_low(self) -> bool:
        return self.height() < self.head_height() + GAP + LEAST_STRIP

    def _place(self) -> None:
        line, width, height = self.head_height(), self.width(), self.height()
        name, figures = self._columns
        left = self.room_for_name(figures)
        self.figures.setGeometry(width - figures, 0, figures, line)
        if self._is_low():
            strip = width - name - figures - 2 * BESIDE
            self.title.setGeometry(0, 0, name, line)
            self.strip.setGeometry(name + BESIDE, GAP, max(0, strip), max(LEAST_HEIGHT, line - 2 * GAP))
            self.whose.hide()
            self.warning.hide()
            return
        self.title.setGeometry(0, 0, name, line)
        left -= name
        self.whose.setVisible(bool(self.whose.text()) and self.whose.sizeHint().width() <= left)
        self.whose.setGeometry(name + BESIDE // 2, 0, max(0, left), line)
        has_warning = bool(self.warning.text()) and height >= 2 * line + 2 * GAP + LEAST_STRIP
        strip = height - line - GAP - has_warning * (line + GAP)
        self.strip.setGeometry(0, line + GAP, width, strip)
        self.warning.setVisible(has_warning)
        self.warning.setGeometry(0, line + 2 * GAP + strip, width, line)


def _padded(text: str) -> str:
    """The value with room for three digits before its unit, so that figures stand still."""
    digits, _, unit = text.partition(" ")
    places = {"%": 3, "W": 3, "°C": 2}.get(unit, 0)
    return f"{digits.rjust(places, FIGURE_SPACE)} {unit}"
