"""One GPU of the list: its check box, its figures, who uses it, and what keeps it from training; a card or a line."""

from __future__ import annotations

import html
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QSizePolicy, QStyle, QWidget

from app.style.fonts import tabular
from app.widgets.build import muted_label
from app.widgets.card import Card
from app.widgets.elided_label import ElidedLabel
from app.widgets.gauges import Meter
from app.widgets.tone_label import ToneLabel
from core.formatting import UNKNOWN, gibibytes, memory_of, memory_size
from core.machine.devices import POWER_CAP, Device, DeviceProcess, DeviceSample
from core.machine.devices.gpu_counters import NOTABLE_SHARED_BYTES
from core.machine.devices.names import device_label

LOST: Final = "lost: the driver no longer lists it"
# Samples for which a warning stays after its cause is gone: one that comes and goes would make the panel jump.
WARNING_HELD: Final = 10
FIGURE_SPACE: Final = "\u2007"
BOX_GAP: Final = 8
# How far the figures stand in from the check box.
MARGIN: Final = 24
EDGES: Final = (12, 8, 12, 8)
WIDEST_FIGURES: Final = "100 % busy  99 °C  999 W"
WIDEST_MEMORY: Final = "99.9 / 999 GiB"
# Qt's QWIDGETSIZE_MAX.
UNLIMITED: Final = (1 << 24) - 1
# Of a row that is a line.
LINE_HEIGHT: Final = 28


class NameBox(QCheckBox):
    """A check box with a name that is elided in its middle; screen readers get the full name."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_name(self, name: str) -> None:
        self._name = name
        self._elide()

    def minimumSizeHint(self) -> QSize:
        return QSize(48, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._elide()
        super().resizeEvent(event)

    def _elide(self) -> None:
        room = self.width() - self.style().pixelMetric(QStyle.PixelMetric.PM_IndicatorWidth) - BOX_GAP
        name = self.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideMiddle, max(16, room))
        self.setText(name.replace("&", "&&"))  # a name has no mnemonics


class DeviceRow(Card):
    """One GPU: a check box with its name, and its memory, users and figures.

    Attributes:
        is_absent: The driver does not list it any more.
        is_lost: It cannot train now: it is absent, hidden, fell off the bus, or its driver does not answer.
    """

    toggled = Signal()

    def __init__(self, device: Device, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.device = device
        self.is_absent = False
        self._sample: DeviceSample | None = None
        self._held = ""
        self._against = ""
        self._caution = ""
        self._quiet = 0
        self.is_line = self._says_name = False
        self.box = NameBox()
        self.box.setObjectName(f"device_{device.uuid}")
        self.box.toggled.connect(self.toggled)
        self._total = QLabel()
        self._memory = Meter()
        self.status = ElidedLabel()
        self.status.setForegroundRole(muted_label().foregroundRole())
        self.figures = QLabel(UNKNOWN)
        for label in (self.figures, self._total):
            label.setFont(tabular(label.font()))
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        # The row keeps its shape while the figures run.
        self._total.setMinimumWidth(self._total.fontMetrics().horizontalAdvance(WIDEST_MEMORY))
        self.warning = ToneLabel()
        self._grid = QGridLayout(self)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(2)
        self._lay_out()
        self.set_device(device)

    def _lay_out(self) -> None:
        """Lay the parts out as a card of three lines, or as one line."""
        grid, line = self._grid, self.is_line
        parts: tuple[QWidget, ...] = (self.box, self._memory, self._total, self.status, self.figures, self.warning)
        for part in parts:
            grid.removeWidget(part)
        grid.setContentsMargins(*((8, 0, 8, 0) if line else EDGES))
        grid.setHorizontalSpacing(6 if line else 8)
        grid.setColumnMinimumWidth(0, 0 if line else MARGIN - BOX_GAP)
        self.figures.setMinimumWidth(self.figures.fontMetrics().horizontalAdvance(self._in_sight(WIDEST_FIGURES)))
        grid.setColumnMinimumWidth(3, self.figures.minimumWidth() if line else 0)
        names_grow = line and self._says_name
        grid.setColumnStretch(0, int(names_grow))
        grid.setColumnStretch(1, int(not names_grow))
        if line:
            for column, part in enumerate(parts[:4]):
                grid.addWidget(part, 0, column)
            grid.addWidget(self.figures, 0, 3)
            self.setFixedHeight(LINE_HEIGHT)
        else:
            grid.addWidget(self.box, 0, 0, 1, 3)
            grid.addWidget(self._memory, 1, 1)
            grid.addWidget(self._total, 1, 2)
            grid.addWidget(self.status, 2, 1)
            grid.addWidget(self.figures, 2, 2)
            grid.addWidget(self.warning, 3, 1, 1, 2)
            self.setMinimumHeight(0)
            self.setMaximumHeight(UNLIMITED)
        self._memory.setMinimumWidth(16 if line else 24)
        self._memory.setMaximumWidth(48 if names_grow else UNLIMITED)
        policy = QSizePolicy.Policy.Fixed if line and not names_grow else QSizePolicy.Policy.Expanding
        self.box.setSizePolicy(policy, QSizePolicy.Policy.Fixed)

    def set_line(self, is_line: bool, *, says_name: bool = True) -> None:
        """Show one line; where all cards are alike, a heading holds their name."""
        if (is_line, says_name) != (self.is_line, self._says_name):
            self.is_line, self._says_name = is_line, says_name
            self._lay_out()
            self.set_device(self.device)

    def _in_sight(self, figures: str) -> str:
        """Of a line without power, beside a name also without temperature; the tooltip has them."""
        return "  ".join(figures.split("  ")[: 3 if not self.is_line else 1 if self._says_name else 2])

    @property
    def is_lost(self) -> bool:
        return self.is_absent or bool(self.device.hidden_by) or (self._sample is not None and self._sample.is_unusable)

    def set_device(self, device: Device) -> None:
        """Take over news of the device: its place may have changed, its UUID has not."""
        self.device = device
        if self.is_absent:  # it is back, and what was known of it is old
            self.is_absent, self._sample = False, None
        self.box.set_name(f"GPU {device.index}" if self.is_line and not self._says_name else device_label(device))
        self.box.setAccessibleName(f"GPU {device.index}, {device.name}")
        self._show()

    def set_against(self, against: str, caution: str = "") -> None:
        """Show in a phrase why the GPU is not ticked by default; `caution`: more of it, for the tooltip."""
        if (against, caution) != (self._against, self._caution):
            self._against, self._caution = against, caution
            self._show()

    def set_absent(self) -> None:
        """Mark the device as gone; its row stays."""
        self.is_absent = True
        self._show()

    def show_sample(self, sample: DeviceSample) -> None:
        self._sample = sample
        worries = [reason for reason in sample.throttle_reasons if reason != POWER_CAP]
        self._quiet = 0 if worries else self._quiet + 1
        if worries:
            self._held = worries[0]
        elif self._quiet > WARNING_HELD or sample.error:
            self._held = ""
        self._show()

    def tick(self, on: bool) -> None:
        """Tick or untick without a signal."""
        with QSignalBlocker(self.box):
            self.box.setChecked(on)

    def _show(self) -> None:
        sample = self._sample or DeviceSample(self.device.uuid, 0.0)
        if self.is_absent:
            sample = DeviceSample(self.device.uuid, 0.0, error=LOST)
        hidden = f"hidden by {self.device.hidden_by}" if self.device.hidden_by else ""
        trouble = sample.error or hidden
        text = trouble or self._held
        self.warning.say(
            f"⚠ {text[0].upper()}{text[1:]}" if text else "", "error" if self.is_lost and not hidden else "warning"
        )
        status = "" if trouble else _status(sample, self._against)
        self.status.set_full_text(status, status.replace(" of PyTorch", ""))
        figures = _figures(sample)
        self.figures.setText(self._in_sight(figures))
        is_notable = bool(trouble or self._held or self._against)
        # What is odd about a card is more than its figures.
        if self.is_line:
            self.warning.hide()
            line = " · ".join(part for part in (f"⚠ {text}" if text else "", status) if part)
            self.status.set_full_text(line, "in use" if "not listed" in line else line.removeprefix("in use by "))
        self.status.setVisible(is_notable if self.is_line else bool(status) or not text)
        self.figures.setVisible(not self.is_line or not is_notable)
        used, total = sample.memory_used_bytes, sample.memory_total_bytes or self.device.memory_bytes
        self._memory.set_share(used / total if used is not None and total else None)
        self._total.setText(memory_of(used, total) if used is not None else f"{gibibytes(total)} GiB")
        for part in (self.box, self._total, self.status, self.figures):
            part.setEnabled(not self.is_lost)
        memory = f"memory {gibibytes(used)} of {gibibytes(total)} GiB" if used is not None else ""
        parts = [figures.replace(FIGURE_SPACE, ""), memory, status, *sample.throttle_reasons, self._caution, trouble]
        self.box.setAccessibleDescription(". ".join(part for part in parts if part))
        self._tell(sample, memory, status, trouble)

    def _tell(self, sample: DeviceSample, memory: str, status: str, trouble: str) -> None:
        more = [
            memory,
            f"power {sample.power_w:.0f} W" if sample.power_w is not None else "",
            f"power limit {sample.power_limit_w:.0f} W" if sample.power_limit_w is not None else "",
            f"fan {sample.fan_percent:.0f} %" if sample.fan_percent is not None else "",
            f"{sample.sm_clock_mhz:,.0f} MHz" if sample.sm_clock_mhz is not None else "",
        ]
        reserve = sample.screen_reserve_bytes
        screen = f"Estimates leave {memory_size(reserve)} of its memory to the screen." if reserve else ""
        processes = [
            f"{process.run or process.name or 'unnamed'} (pid {process.pid}): {_held(process)}"
            for process in sample.processes
        ]
        lines = [self.device.name, self.device.uuid, status, ", ".join(part for part in more if part)]
        lines += [screen, *sample.throttle_reasons, *processes[:8]]
        if self.is_lost:
            lines.append(f"Cannot be selected: {trouble}")
        elif trouble or self._caution:
            lines.append(trouble or self._caution)
        tip = plain_tip("\n".join(line for line in lines if line))
        for part in (self, self.box, self.status):
            part.setToolTip(tip)


def _held(process: DeviceProcess) -> str:
    """A process's share of the card's memory, and of the machine's beyond buffers."""
    shared = process.shared_bytes or 0
    more = f" + {memory_size(shared)} of this computer's memory" if shared >= NOTABLE_SHARED_BYTES else ""
    return f"{memory_size(process.memory_bytes)}{more}"


def plain_tip(text: str) -> str:
    """A text for a tooltip, also where Qt would take it for HTML."""
    return "<qt>" + html.escape(text).replace("\n", "<br>") + "</qt>" if "<" in text else text


def _status(sample: DeviceSample, against: str) -> str:
    screen = "drives the screen" if sample.drives_screen else ""
    state = against if against.startswith(("in use", "needs")) else "free" if sample.ts else ""
    parts = [state, against if against != state else "", screen]
    return " · ".join(part for part in parts if part)


def _figures(sample: DeviceSample) -> str:
    """The figures, padded to stand in columns."""
    parts = [
        f"{_one(sample.utilization_percent, '%', 3)} busy",
        _one(sample.temperature_celsius, "°C", 2),
        _one(sample.power_w, "W", 3),
    ]
    return "  ".join(parts)


def _one(value: float | None, unit: str, digits: int = 0) -> str:
    text = UNKNOWN if value is None else f"{value:.0f}"
    return f"{text.rjust(digits, FIGURE_SPACE)} {unit}"
