"""Devices of other machines in New run: a card for each machine, with a check box for each of its devices.

A run is on one machine: a tick on one clears the ticks of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QWidget

from app.widgets.build import bold_label, lay_column, lay_row, muted_label
from app.widgets.card import Card
from core.errors import RankdeckError
from core.machine.devices import Device
from core.machine.devices.names import device_label
from core.machines.machine import Machine

if TYPE_CHECKING:
    from core.machines.answers import Devices

COLUMNS: Final = 2
EDGES: Final = (12, 8, 12, 8)
LOOKING: Final = "Looking for its devices…"


class MachineGroup(Card):
    """One machine.

    Signals:
        toggled: The user ticked a device or not; this group.
        looked: Its devices are known; this group.
    """

    toggled = Signal(object)
    looked = Signal(object)

    def __init__(self, machine: Machine, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.machine = machine
        self.look: Devices | None = None
        self.boxes: dict[str, QCheckBox] = {}
        self._address = muted_label(machine.address, wraps=False)
        self.state = muted_label(LOOKING)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(24)
        head = lay_row(None, bold_label(machine.name), self._address, None, spacing=8)
        lay_column(self, head, self._grid, self.state, spacing=4, margins=EDGES)

    def show_look(self, look: Devices) -> None:
        """Show the machine's devices; ticks stay on those that are still there."""
        ticked = {device.uuid for device in self.selected()}
        self.look = look
        for box in self.boxes.values():
            self._grid.removeWidget(box)
            box.deleteLater()
        self.boxes.clear()
        for place, device in enumerate(look.devices):
            box = self._box(device)
            with QSignalBlocker(box):
                box.setChecked(device.uuid in ticked)
            self.boxes[device.uuid] = box
            self._grid.addWidget(box, place // COLUMNS, place % COLUMNS)
        self._say(look.problem or "" if not any(device.kind == "cuda" for device in look.devices) else "")
        self.looked.emit(self)

    def show_error(self, error: RankdeckError) -> None:
        self._say(f"{error.cause} {error.window_step}")

    def selected(self) -> list[Device]:
        devices = () if self.look is None else self.look.devices
        return [device for device in devices if device.uuid in self.boxes and self.boxes[device.uuid].isChecked()]

    def clear(self) -> None:
        """Take every tick away, without a signal."""
        for box in self.boxes.values():
            with QSignalBlocker(box):
                box.setChecked(False)

    def _box(self, device: Device) -> QCheckBox:
        box = QCheckBox(device_label(device) if device.kind == "cpu" else device.name)
        box.setObjectName(f"device_{self.machine.name}_{device.uuid}")
        box.setAccessibleName(f"{device.name} of {self.machine.name}")
        box.setToolTip(f"Trains on {self.machine.name}")
        box.setEnabled(not device.hidden_by)
        box.toggled.connect(self._on_toggled)
        return box

    def _on_toggled(self, _on: bool) -> None:
        self.toggled.emit(self)

    def _say(self, text: str) -> None:
        self.state.setText(text)
        self.state.setVisible(bool(text))


class MachineGroups(QWidget):
    """A card for each machine; nothing is shown where there is none.

    Signals:
        selection_changed: Other devices are ticked.
        picked: The user ticked a device of a machine.
        looked: The devices of a machine are known; its group.
    """

    selection_changed = Signal()
    picked = Signal()
    looked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, MachineGroup] = {}
        self._heading = QLabel("Other machines")
        self._heading.setForegroundRole(muted_label().foregroundRole())
        self._cards = lay_column(None, spacing=8)
        lay_column(self, self._heading, self._cards, spacing=4)
        self.hide()

    def set_machines(self, machines: Sequence[Machine]) -> None:
        """Show these machines; the card of an unchanged one stays."""
        before = self.chosen()
        for name in [name for name, group in self.groups.items() if group.machine not in machines]:
            old = self.groups.pop(name)
            self._cards.removeWidget(old)
            old.deleteLater()
        for place, machine in enumerate(machines):
            if machine.name not in self.groups:
                self.groups[machine.name] = self._made(machine)
            self._cards.insertWidget(place, self.groups[machine.name])
        self.setVisible(bool(self.groups))
        if before is not None and self.chosen() is None:
            self.selection_changed.emit()

    def _made(self, machine: Machine) -> MachineGroup:
        group = MachineGroup(machine, self)
        group.toggled.connect(self._on_toggled)
        group.looked.connect(self.looked)
        return group

    def chosen(self) -> MachineGroup | None:
        """The machine whose devices are ticked; None where the run is on this computer."""
        return next((group for group in self.groups.values() if group.selected()), None)

    def clear(self) -> None:
        """Take every tick away, without a signal."""
        for group in self.groups.values():
            group.clear()

    def _on_toggled(self, group: MachineGroup) -> None:
        if group.selected():
            for other in self.groups.values():
                if other is not group:
                    other.clear()
            self.picked.emit()
        self.selection_changed.emit()
