"""Device picker: a check box for each device with its model, its present load and its processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.devices.cpu_group import CpuGroup, CpuSlot
from app.devices.device_choice import DeviceChoice
from app.devices.device_row import LINE_HEIGHT, DeviceRow
from app.draft.memory_text import BalanceText
from app.form.field_row import ProblemLabel
from app.style.fonts import tabular
from app.widgets.build import bold_label, lay_column, lay_row, muted_label
from app.widgets.buttons import Chip, PrimaryButton
from app.widgets.card import Card
from app.widgets.disclosure import Disclosure
from core.errors import RankdeckError
from core.machine.devices import Device, DeviceSample
from core.machine.devices.names import device_label

LOOKING: Final = "Looking for devices…"
OWN_INTERPRETER: Final = "Only a script with its own Python interpreter can train on it."
NO_CUDA: Final = "This PyTorch is built for the CPU only. Training on a GPU needs its CUDA build (AMD: ROCm)."
# More GPUs than this are a line each.
MOST_CARDS: Final = 3
CARD_HEIGHT: Final = 76
NONE_FREE: Final = "No GPU is free. Select one all the same, or train on CPU devices."

Row = DeviceRow | CpuSlot


class BalanceCard(Card):
    """Proposes load balancing; hidden where it brings no gain."""

    balance_requested = Signal()
    measure_requested = Signal()

    def __init__(self) -> None:
        super().__init__(edge="accent")
        self.title, self.text, self.gain = bold_label("Unlike devices: balance by speed?"), muted_label(), bold_label()
        self.measure = QPushButton("Measure &gain")
        self.measure.setToolTip("Time steps on each device, to see what balancing would bring (nothing is trained)")
        self.measure.clicked.connect(self.measure_requested)
        self.balance = PrimaryButton("&Balance")
        self.balance.setToolTip("Give each device samples in proportion to its measured speed")
        self.balance.clicked.connect(self.balance_requested)
        foot = lay_row(None, self.gain, None, self.measure, self.balance, spacing=8)
        lay_column(self, self.title, self.text, foot, spacing=4, margins=(12, 8, 12, 8))
        self.hide()

    def show_balance(self, text: BalanceText | None) -> None:
        self.setVisible(text is not None)
        if text is not None:
            self.text.setText(text.text)
            self.gain.setText(text.gain)
            self.measure.setVisible(text.can_measure)


class DevicePicker(QWidget):
    """A card for each GPU, and one for the processor.

    Ticked devices train: one that cannot be used now loses its tick, and has it again when it is back.
    """

    selection_changed = Signal()
    cuda_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, DeviceRow] = {}
        self._choice = DeviceChoice()
        self._found_problem = ""
        self._error: RankdeckError | None = None
        self.is_looking = True
        self._notice = muted_label(LOOKING)
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self._count = muted_label(wraps=False)
        self._count.setFont(tabular(self._count.font()))
        self.all = self._chip("All", "Select every device that can train", self._choose_all)
        self.free = self._chip("Free", "Select the GPUs that no other program uses", self._choose_free)
        self.none = self._chip("None", "Select no device", lambda: self.select(()))
        self.get_cuda = QPushButton("Install GPU build…")
        self.get_cuda.setToolTip("Install the build of PyTorch that can train on this machine's GPUs")
        self.get_cuda.clicked.connect(self.cuda_requested)
        self.get_cuda.hide()
        self.cpu = CpuGroup()
        self.cpu.toggled.connect(self._on_toggled)
        self.problem = ProblemLabel()
        self.fold = Disclosure("GPUs", "Show each GPU")
        self.fold.setChecked(True)
        self.fold.clicked.connect(self._on_folded)
        self.fold.hide()
        self._chips = QWidget()
        lay_row(self._chips, self.fold, self._count, None, self.all, self.free, self.none, spacing=8)
        self._chips.hide()
        self._list = QWidget()
        self._cards = lay_column(self._list, spacing=8)
        self.fold.toggled.connect(self._list.setVisible)
        self.fold.toggled.connect(self._show_cpu)
        self._room, self._folded_by_hand = 0, False
        cuda = lay_row(None, self.get_cuda, None)
        lay_column(self, self._chips, self._notice, cuda, self._list, self.cpu, self.problem, spacing=8)

    def set_devices(
        self,
        devices: Sequence[Device],
        problem: str | None,
        no_cuda: str | None = None,
        cuda_build: str | None = "",
    ) -> None:
        """Show a `DeviceReading`. A GPU that is gone stays, marked as lost; ticks stay on their UUID."""
        before = self.selected()
        self.is_looking = False
        self._choice.set_devices(devices, None if no_cuda else cuda_build)
        self._found_problem = problem or ""
        gpus = {device.uuid: device for device in devices if device.kind == "cuda"}
        for uuid in self._rows.keys() - gpus.keys():
            self._rows[uuid].set_absent()
            self._cards.removeWidget(self._rows[uuid])
            self._cards.addWidget(self._rows[uuid])
        for place, device in enumerate(gpus.values()):
            row = self._rows.get(device.uuid) or self._add(device)
            row.set_device(device)
            self._cards.insertWidget(place, row)
        self.cpu.set_devices([device for device in devices if device.kind == "cpu"])
        self._fit()
        self._show()
        if self.selected() != before:
            self.selection_changed.emit()

    def set_room(self, height: int) -> None:
        """Limit the height of the GPUs, so that the widgets below them stay in sight."""
        if height != self._room:
            self._room = height
            self._fit()

    def _fit(self) -> None:
        """Show many GPUs as lines, and fold them where even those are too high; a person's own fold stays."""
        count, names = len(self._rows), {row.device.name for row in self._rows.values()}
        lines = count > MOST_CARDS or (count > 0 and 0 < self._room < count * CARD_HEIGHT)
        for row in self._rows.values():
            row.set_line(lines, says_name=len(names) > 1)
        self._cards.setSpacing(2 if lines else 8)
        self.cpu.set_line(bool(self._choice.usable))
        self.fold.setVisible(lines)
        self._count.setVisible(not lines)
        if not lines:
            self.fold.setChecked(True)
        elif not self._folded_by_hand and self._room > 0:
            self.fold.setChecked(count * (LINE_HEIGHT + 2) <= self._room)
        self._show_cpu()

    def _show_cpu(self) -> None:
        """Show the CPU with folded GPUs where there is room, or it trains."""
        is_folded = not (self.fold.isHidden() or self.fold.isChecked())
        is_chosen = any(slot.box.isChecked() for slot in self.cpu.slots.values())
        self.cpu.setVisible(bool(self.cpu.slots) and (is_chosen or not is_folded or self._room > 1))

    def _on_folded(self) -> None:
        self._folded_by_hand = True

    def _add(self, device: Device) -> DeviceRow:
        row = DeviceRow(device, self)
        row.toggled.connect(self._on_toggled)
        self._rows[device.uuid] = row
        return row

    def _chip(self, text: str, tip: str, choose: Callable[[], object]) -> Chip:
        button = Chip(text, tip)
        button.setAccessibleName(f"{text} devices")
        button.clicked.connect(choose)
        return button

    # --- what is ticked ----------------------------------------------------------------------------------

    def show_samples(self, samples: Sequence[DeviceSample]) -> None:
        before = self.selected()
        rows = {uuid: row for uuid, row in self._rows.items() if not row.is_absent}
        self._choice.take_samples(sample for sample in samples if sample.uuid in rows)
        for sample in samples:
            if sample.uuid in rows:
                rows[sample.uuid].show_sample(sample)
        slot = next((sample for sample in samples if sample.uuid in self.cpu.slots), None)
        if slot is not None:
            self.cpu.show_sample(slot)
        self._show()
        if self.selected() != before:
            self.selection_changed.emit()

    def _show(self) -> None:
        """Tick the chosen devices that can be used, and show the reason for the others."""
        against = self._choice.reasons_against()
        for uuid, row in self._rows.items():
            reason = against.get(uuid, "")
            row.set_against(reason, OWN_INTERPRETER if reason.startswith("needs") else "")
        for one in self.rows():
            one.tick(self._choice.is_wished(one.device) and not one.is_lost)
        self._show_notice()

    def selected(self) -> list[Device]:
        return [row.device for row in self.rows() if row.box.isChecked() and not row.is_lost]

    def wished(self) -> list[str]:
        """UUIDs of the chosen devices, also of unusable ones, to be remembered; empty while the defaults hold."""
        if self._choice.wanted is None:
            return []
        shown = [row.device.uuid for row in self.rows() if self._choice.is_wished(row.device)]
        return shown + sorted(self._choice.wished_beside(self._rows.keys() | self.cpu.slots.keys()))

    def select(self, uuids: Sequence[str]) -> None:
        """Tick exactly these devices; unknown ones are ticked when they turn up."""
        self._choice.choose(uuids)
        self._show()
        self.selection_changed.emit()

    def _choose_all(self) -> None:
        gpus = self._choice.usable
        self.select([device.uuid for device in gpus] or list(self.cpu.slots))

    def _choose_free(self) -> None:
        self.select([gpu.uuid for gpu in self._choice.free])

    def _on_toggled(self) -> None:
        rows = {row.device.uuid: row for row in self.rows()}
        shown = {uuid for uuid, row in rows.items() if not row.is_lost}
        ticked = {uuid for uuid in shown if rows[uuid].box.isChecked()}
        gone = {uuid for uuid, row in rows.items() if row.is_lost and self._choice.is_wished(row.device)}
        chosen = ticked | gone | self._choice.wished_beside(rows.keys())
        self._choice.choose(chosen, without_gpu=not self._rows)
        self._show_notice()
        self.selection_changed.emit()

    # --- what is shown -----------------------------------------------------------------------------------

    def row(self, uuid: str) -> Row:
        return self._rows.get(uuid) or self.cpu.slots[uuid]

    def rows(self) -> list[Row]:
        places = {self._cards.indexOf(row): row for row in self._rows.values()}
        return [*(places[place] for place in sorted(places)), *self.cpu.slots.values()]

    def show_problem(self, error: RankdeckError | None) -> None:
        """Mark the choice as wrong, except while devices are looked for."""
        self._error = error
        self._show_notice()

    def _show_notice(self) -> None:
        choice = self._choice
        gpus = [device for device in choice.devices if device.kind == "cuda" and not device.hidden_by]
        is_cpu_build = choice.cuda_build is None and bool(gpus)
        error = None if self.is_looking else self._error
        none_free = bool(choice.usable) and not choice.free and not self.selected()
        # The reason why nothing is selected, instead of that it is not.
        if none_free and error is not None:
            self.problem.say(f"⚠ {NONE_FREE}", "warning")
        else:
            self.problem.set_problem(error)
        texts = [
            LOOKING if self.is_looking else self._found_problem,
            NO_CUDA if is_cpu_build and not any(device.kind == "cuda" for device in self.selected()) else "",
            NONE_FREE if none_free and error is None else "",
        ]
        text = " ".join(part for part in texts if part)
        self._notice.setText(text)
        self._notice.setVisible(bool(text) and not (error is not None and error.cause in text))  # once is enough
        self.get_cuda.setVisible(is_cpu_build)
        self.free.setVisible(bool(choice.usable))
        self._chips.setVisible(not self.is_looking)
        count = sum(not row.is_lost for row in self.rows())
        self._count.setText(f"{len(self.selected())} of {count} selected")
        names = {device_label(row.device).partition(" · ")[2] for row in self._rows.values()}
        ticked = sum(device.kind == "cuda" for device in self.selected())
        self.fold.setText(f"{ticked} of {len(self._rows)} {names.pop() if len(names) == 1 else 'GPUs'}")
