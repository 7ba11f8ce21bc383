"""The devices with a check box each: what they are, what they do just now, and which ones will train."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.views.new_run.device_row import DeviceRow
from app.views.widgets.build import lay_column, muted_label
from app.views.widgets.field_row import ProblemLabel
from core.errors import RankdeckError
from core.machine.devices import Device, DeviceSample

NO_CUDA: Final = "this PyTorch cannot use it; only a script with its own Python interpreter can"


class DevicePicker(QWidget):
    """A row for each device. What is wished for is kept by UUID, whatever order the driver gives.

    What is ticked trains: a device that cannot be used just now loses its tick, and has it again when it is back.
    """

    selection_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: dict[str, DeviceRow] = {}
        self._wanted: set[str] | None = None
        self._no_cuda = False
        self._wrong = ""
        self._notice = muted_label("Looking for devices…")
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self.problem = ProblemLabel()
        self._column = lay_column(self, self._notice, self.problem, spacing=8)

    def set_devices(self, devices: Sequence[Device], problem: str | None, no_cuda: str | None = None) -> None:
        """Shows what the monitor found. A GPU that is gone stays, marked as lost; ticks stay on their UUID.

        Args:
            devices: All of them.
            problem: Why there is no GPU, or fewer than expected.
            no_cuda: Why this PyTorch can train on no GPU: none is ticked unless a person does.
        """
        before = self.selected()
        self._no_cuda = no_cuda is not None
        known = {device.uuid: device for device in devices}
        self._part_with({uuid for uuid in self._rows if uuid not in known})
        short = short_uuids([*self._rows, *known])
        for place, device in enumerate(devices):
            row = self._rows.get(device.uuid) or self._add(device)
            row.set_device(device, short[device.uuid])
            row.set_caution(NO_CUDA if self._no_cuda and device.kind == "cuda" else "")
            self._column.insertWidget(1 + place, row)
        self._notice.setText(" ".join(text for text in (problem, no_cuda) if text))
        self._show_notice()
        self._chain_tabs(list(known))
        self._tick()
        if self.selected() != before:
            self.selection_changed.emit()

    def _part_with(self, missing: set[str]) -> None:
        """CPU devices are only offered while there is no GPU, so those are not missed."""
        for uuid in missing:
            if self._rows[uuid].device.kind == "cuda":
                self._rows[uuid].set_absent()
                self._column.removeWidget(self._rows[uuid])
                self._column.insertWidget(self._column.count() - 1, self._rows[uuid])
                continue
            row = self._rows.pop(uuid)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()

    def _add(self, device: Device) -> DeviceRow:
        row = DeviceRow(device, self)
        row.toggled.connect(self._on_toggled)
        self._rows[device.uuid] = row
        return row

    def _tick(self) -> None:
        """What is wished for, as far as it can be used."""
        for row in self._rows.values():
            row.tick(self._is_wished(row.device) and not row.is_lost)

    def _is_wished(self, device: Device) -> bool:
        """Before anybody chose: every GPU, or the first two CPU devices, so that the demo shows several ranks."""
        usable = [row.device for row in self._rows.values() if not row.device.hidden_by]
        has_gpu = not self._no_cuda and any(device.kind == "cuda" for device in usable)
        wanted = self._wanted
        if wanted and has_gpu and all(uuid.startswith("cpu:") for uuid in wanted):
            wanted = None  # chosen while no GPU was to be had
        if wanted is not None:
            return device.uuid in wanted
        return has_gpu if device.kind == "cuda" else device.index < 2 and not has_gpu

    def _chain_tabs(self, uuids: Sequence[str]) -> None:
        boxes = [self._rows[uuid].box for uuid in uuids]
        for first, second in itertools.pairwise(boxes):
            QWidget.setTabOrder(first, second)

    def show_samples(self, samples: Sequence[DeviceSample]) -> None:
        """Shows the newest figures of each device."""
        before = self.selected()
        for sample in samples:
            row = self._rows.get(sample.uuid)
            if row is not None and not row.is_absent:
                row.show_sample(sample)
        self._tick()
        if self.selected() != before:
            self.selection_changed.emit()

    def selected(self) -> list[Device]:
        """The ticked devices, in the order shown."""
        return [row.device for row in self.rows() if row.box.isChecked() and not row.is_lost]

    def wished(self) -> list[str]:
        """UUIDs of what is chosen, also of what cannot be used just now: to be remembered."""
        shown = [row.device.uuid for row in self.rows() if self._is_wished(row.device)]
        return shown + sorted((self._wanted or set()) - self._rows.keys())

    def select(self, uuids: Sequence[str]) -> None:
        """Ticks exactly these; those that are not known yet are ticked when they turn up."""
        self._wanted = set(uuids)
        self._tick()
        self.selection_changed.emit()

    def row(self, uuid: str) -> DeviceRow:
        """The row of a device."""
        return self._rows[uuid]

    def show_problem(self, error: RankdeckError | None) -> None:
        """Marks the choice as wrong, with the reason."""
        self.problem.set_problem(error)
        self._wrong = error.cause if error is not None else ""
        self._show_notice()

    def _show_notice(self) -> None:
        text = self._notice.text()
        self._notice.setVisible(bool(text) and not (self._wrong and self._wrong in text))  # once is enough

    def rows(self) -> list[DeviceRow]:
        """The rows in the order shown."""
        places = {self._column.indexOf(row): row for row in self._rows.values()}
        return [places[place] for place in sorted(places)]

    def _on_toggled(self) -> None:
        shown = {uuid for uuid, row in self._rows.items() if not row.is_lost}
        ticked = {uuid for uuid in shown if self._rows[uuid].box.isChecked()}
        gone = {uuid for uuid, row in self._rows.items() if row.is_lost and self._is_wished(row.device)}
        self._wanted = ticked | gone | ((self._wanted or set()) - self._rows.keys())
        self.selection_changed.emit()


def short_uuids(uuids: Sequence[str]) -> dict[str, str]:
    """The beginning of each UUID (``GPU-6ada6000``), or its two ends where several begin the same way."""
    begins = Counter(uuid[:12] for uuid in dict.fromkeys(uuids))
    return {uuid: uuid[:12] if begins[uuid[:12]] == 1 else f"{uuid[:7]}…{uuid[-4:]}" for uuid in uuids}
