"""CPU devices as one card: the processor with the machine's load, and a check box for each slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QWidget

from app.style.fonts import tabular
from app.widgets.build import lay_column, lay_row, muted_label, named
from app.widgets.card import Card
from app.widgets.disclosure import Disclosure
from app.widgets.elided_label import ElidedLabel
from app.widgets.gauges import Meter
from core.formatting import UNKNOWN, memory_of
from core.machine.devices import Device, DeviceSample
from core.machine.devices.names import device_label

COLUMNS: Final = 4
EDGES: Final = (12, 8, 12, 8)
TIP: Final = "Trains on its share of the processor's cores"


@dataclass(frozen=True, slots=True)
class CpuSlot:
    """A CPU device, with the part of `DeviceRow`'s interface that both share."""

    device: Device
    box: QCheckBox
    is_lost: bool = False

    def tick(self, on: bool) -> None:
        """Tick or untick without a signal."""
        with QSignalBlocker(self.box):
            self.box.setChecked(on)


class CpuGroup(Card):
    """The processor with its load, which is the whole machine's; `slots`: the CPU devices by UUID."""

    toggled = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.slots: dict[str, CpuSlot] = {}
        self._title = QLabel("CPU")
        self._name = ElidedLabel()
        self._name.setForegroundRole(muted_label().foregroundRole())
        self.load = QLabel(UNKNOWN)
        self.load.setFont(tabular(self.load.font()))
        self.load.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.load.setToolTip("The load and memory of the whole machine, with all programs")
        self._memory = Meter()
        self._boxes = QGridLayout()
        self._boxes.setHorizontalSpacing(24)
        self._boxes.setVerticalSpacing(2)
        self._boxes.setColumnStretch(COLUMNS, 1)
        self.fold = named(Disclosure("", "Show the CPU devices"), "CPU devices")
        self.fold.toggled.connect(self._show_slots)
        self._slots = QWidget()
        self._slots.setLayout(self._boxes)
        self._boxes.setContentsMargins(0, 0, 0, 0)
        self._is_line = False
        head = lay_row(None, self._title, self._name, self.load, self.fold, spacing=8, grow=self._name)
        lay_column(self, head, self._memory, self._slots, spacing=6, margins=EDGES)
        self._show_slots()
        self.hide()

    def set_line(self, is_line: bool) -> None:
        """Fold the slots under one line; ticked ones stay in sight."""
        if is_line != self._is_line:
            self._is_line = is_line
            self._show_slots()

    def _show_slots(self) -> None:
        ticked = any(slot.box.isChecked() for slot in self.slots.values())
        self.fold.setVisible(self._is_line and not ticked)
        self._slots.setVisible(not self._is_line or ticked or self.fold.isChecked())
        self._memory.setVisible(not self._slots.isHidden())

    def set_devices(self, devices: Sequence[Device]) -> None:
        if [slot.device for slot in self.slots.values()] == list(devices):
            return
        known = {device.uuid for device in devices}
        for uuid in [uuid for uuid in self.slots if uuid not in known]:
            box = self.slots.pop(uuid).box
            self._boxes.removeWidget(box)
            box.deleteLater()
        self.slots = {device.uuid: self.slots.get(device.uuid) or self._slot(device) for device in devices}
        for place, slot in enumerate(self.slots.values()):
            self._boxes.addWidget(slot.box, place // COLUMNS, place % COLUMNS)
        if devices:
            name = devices[0].name
            self._name.set_full_text(name.partition("(")[2].removesuffix(")") or name)
        self._show_slots()
        self.setVisible(bool(devices))

    def show_sample(self, sample: DeviceSample) -> None:
        used, total, busy = sample.memory_used_bytes, sample.memory_total_bytes, sample.utilization_percent
        percent = UNKNOWN if busy is None else f"{busy:.0f}"
        self.load.setText(f"machine {percent} %  {memory_of(used, total)}")
        # Room for the longest text so far: figures do not move, and none is cut until the row is laid out again.
        self.load.setMinimumWidth(max(self.load.minimumWidth(), self.load.sizeHint().width()))
        self._memory.set_share(used / total if used is not None and total else None)
        for slot in self.slots.values():
            slot.box.setAccessibleDescription(self.load.text())

    def _slot(self, device: Device) -> CpuSlot:
        box = QCheckBox(device_label(device))
        box.setObjectName(f"device_{device.uuid}")
        box.setAccessibleName(device.name)
        box.setToolTip(TIP)
        box.setMinimumWidth(box.sizeHint().width())
        box.toggled.connect(self.toggled)
        return CpuSlot(device, box)
