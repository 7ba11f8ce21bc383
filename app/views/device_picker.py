"""The devices with a check box each: what they are, what they do just now, and which ones will train."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.views.field_row import ProblemLabel
from app.views.gauges import Meter, Sparkline
from app.views.numbers import UNKNOWN, gib, tabular
from app.views.tones import tone
from core.devices import Device, DeviceSample
from core.errors import RankdeckError

LOST: Final = "lost: it does not show up any more"


class NameBox(QCheckBox):
    """A check box whose name is cut with an ellipsis where the panel is narrow; its full name is for screen readers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_name(self, name: str) -> None:
        """What it says when there is room."""
        self._name = name
        self.setAccessibleName(name)
        self._elide()

    def minimumSizeHint(self) -> QSize:
        """Narrow: the name may be cut."""
        return QSize(48, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cuts the name to the new width."""
        self._elide()
        super().resizeEvent(event)

    def _elide(self) -> None:
        room = self.width() - self.iconSize().width() - 12
        self.setText(self.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideRight, max(16, room)))


class DeviceRow(QWidget):
    """One device. The box's label names it; what it does stands under it."""

    toggled = Signal()

    def __init__(self, device: Device, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.device = device
        self.is_lost = False
        self.box = NameBox()
        self.box.setObjectName(f"device_{device.uuid}")
        self.box.toggled.connect(self._on_toggled)
        self._memory_text = QLabel(self)
        self._memory = Meter(self)
        self._spark = Sparkline()
        self._figures = QLabel(UNKNOWN)
        for label in (self._figures, self._memory_text):
            label.setFont(tabular(label.font()))
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._warning = QLabel()
        self._warning.setWordWrap(True)
        self._warning.hide()
        self._lay_out()
        self.set_device(device)
        self._colour()

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        is_gpu = self.device.kind == "cuda"
        grid.addWidget(self.box, 0, 0, 1, 3 if is_gpu else 1)
        grid.setColumnMinimumWidth(0, 16 if is_gpu else 104)
        if is_gpu:
            grid.addWidget(self._memory, 1, 1)
            grid.addWidget(self._memory_text, 1, 2)
        else:
            self._memory.hide()
            self._memory_text.hide()
        grid.addWidget(self._spark, 2 if is_gpu else 0, 1)
        grid.addWidget(self._figures, 2 if is_gpu else 0, 2)
        grid.addWidget(self._warning, 3, 1, 1, 2)
        grid.setColumnStretch(1, 1)
        # Wide enough for "100 %  100 °C  1000 W": the row keeps its shape while the figures run.
        template = "100 %  99 °C  999 W" if is_gpu else "100 %"
        self._figures.setMinimumWidth(self._figures.fontMetrics().horizontalAdvance(template))

    def set_device(self, device: Device) -> None:
        """Takes over what is known about the device (its place may have changed; its UUID has not)."""
        self.device = device
        short = device.name.removeprefix("NVIDIA ")
        self.box.set_name(f"{device.index}  {short}" if device.kind == "cuda" else f"CPU slot {device.index}")
        self.box.setToolTip(f"{device.name}\n{device.uuid}")
        self._memory_text.setText(gib(device.memory_bytes) if device.kind == "cuda" else "")
        self.set_lost(False)

    def set_lost(self, lost: bool, why: str = LOST) -> None:
        """A device that is gone keeps its row, says so, and does not train."""
        self.is_lost = lost
        self.box.setEnabled(not lost)
        self._warn(why if lost else "")
        self.box.setToolTip(f"{self.device.name}\n{self.device.uuid}" + (f"\n{why}" if lost else ""))
        if lost:
            self._figures.setText(UNKNOWN)
            self._memory.set_share(None)

    def show_sample(self, sample: DeviceSample) -> None:
        """Shows the newest figures."""
        self._spark.append(sample.utilization_percent)
        if sample.error is not None:
            self.set_lost("lost" in sample.error.lower(), sample.error)
            self._warn(sample.error)
            self._figures.setText(UNKNOWN)
            return
        if self.is_lost:
            self.set_lost(False)
        self._figures.setText(_figures(sample, self.device.kind))
        used, total = sample.memory_used_bytes, sample.memory_total_bytes or self.device.memory_bytes
        self._memory.set_share(used / total if used is not None and total else None)
        if self.device.kind == "cuda":
            self._memory_text.setText(f"{gib(used)[:-4]} / {gib(total)}" if used is not None else gib(total))
        self._warn(", ".join(sample.throttle_reasons))
        self.box.setAccessibleDescription(f"{_figures(sample, self.device.kind)}. {self._warning.text()}")

    @property
    def warning(self) -> str:
        """What is unusual about it just now; empty when nothing is."""
        return self._warning.text() if not self._warning.isHidden() else ""

    def _warn(self, words: str) -> None:
        self._warning.setText(f"⚠ {words}" if words else "")
        self._warning.setVisible(bool(words))

    def _on_toggled(self, _on: bool) -> None:
        self.toggled.emit()

    def changeEvent(self, event: QEvent) -> None:
        """Takes the new theme's colours."""
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.WindowText, tone(self.palette(), "warning"))
        self._warning.setPalette(palette)


def _figures(sample: DeviceSample, kind: str) -> str:
    parts = [_one(sample.utilization_percent, "%")]
    if kind == "cuda":
        parts += [_one(sample.temperature_celsius, "°C"), _one(sample.power_w, "W")]
    return "  ".join(parts)


def _one(value: float | None, unit: str) -> str:
    return f"{UNKNOWN} {unit}" if value is None else f"{value:.0f} {unit}"


class DevicePicker(QWidget):
    """A row for each device. What is ticked is kept by UUID, whatever order the driver gives."""

    selection_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: dict[str, DeviceRow] = {}
        self._wanted: set[str] | None = None
        self._notice = QLabel("Looking for devices…")
        self._notice.setWordWrap(True)
        self._notice.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.problem = ProblemLabel()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(self._notice)
        self._column.addWidget(self.problem)

    def set_devices(self, devices: Sequence[Device], problem: str | None) -> None:
        """Shows what the monitor found. A device that is gone stays, marked as lost; ticks stay on their UUID."""
        before = self.selected()
        known = {device.uuid: device for device in devices}
        for uuid, row in self._rows.items():
            if uuid not in known and not row.is_lost:
                row.set_lost(True)
        for device in devices:
            if device.uuid in self._rows:
                self._rows[device.uuid].set_device(device)
            else:
                self._add(device)
        for place, uuid in enumerate([*known, *(uuid for uuid in self._rows if uuid not in known)]):
            self._column.insertWidget(1 + place, self._rows[uuid])
        self._notice.setText(problem or "")
        self._notice.setVisible(bool(problem))
        self._chain_tabs(list(known))
        if self.selected() != before:
            self.selection_changed.emit()

    def _add(self, device: Device) -> None:
        row = DeviceRow(device, self)
        ticked = device.uuid in self._wanted if self._wanted is not None else self._is_default(device)
        blocked = row.box.blockSignals(True)
        row.box.setChecked(ticked)
        row.box.blockSignals(blocked)
        row.toggled.connect(self._on_toggled)
        self._rows[device.uuid] = row

    def _is_default(self, device: Device) -> bool:
        """At first start: every GPU, or the first two CPU slots, so that the demo shows several ranks."""
        return device.kind == "cuda" or (
            device.index < 2 and not any(r.device.kind == "cuda" for r in self._rows.values())
        )

    def _chain_tabs(self, uuids: Sequence[str]) -> None:
        boxes = [self._rows[uuid].box for uuid in uuids]
        for first, second in itertools.pairwise(boxes):
            QWidget.setTabOrder(first, second)

    def show_samples(self, samples: Sequence[DeviceSample]) -> None:
        """Shows the newest figures of each device."""
        before = self.selected()
        for sample in samples:
            if sample.uuid in self._rows:
                self._rows[sample.uuid].show_sample(sample)
        if self.selected() != before:
            self.selection_changed.emit()

    def devices(self) -> list[Device]:
        """Every device that is there, in the order shown."""
        return [row.device for row in self._ordered() if not row.is_lost]

    def selected(self) -> list[Device]:
        """The ticked devices that are there, in the order shown."""
        return [row.device for row in self._ordered() if row.box.isChecked() and not row.is_lost]

    def select(self, uuids: Sequence[str]) -> None:
        """Ticks exactly these; those that are not known yet are ticked when they turn up."""
        self._wanted = set(uuids)
        for uuid, row in self._rows.items():
            blocked = row.box.blockSignals(True)
            row.box.setChecked(uuid in self._wanted)
            row.box.blockSignals(blocked)
        self.selection_changed.emit()

    def row(self, uuid: str) -> DeviceRow:
        """The row of a device."""
        return self._rows[uuid]

    def show_problem(self, error: RankdeckError | None) -> None:
        """Marks the choice as wrong, with the reason."""
        self.problem.set_problem(error)

    def _ordered(self) -> list[DeviceRow]:
        places = {self._column.indexOf(row): row for row in self._rows.values()}
        return [places[place] for place in sorted(places)]

    def _on_toggled(self) -> None:
        self._wanted = {uuid for uuid, row in self._rows.items() if row.box.isChecked()}
        self.selection_changed.emit()
