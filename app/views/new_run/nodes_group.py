"""Several machines, in New run: how many, and over which network interface of this computer; folded away at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLabel, QWidget

from app.state.nodes_text import ABOUT, NO_INTERFACE, head_text
from app.views.widgets.build import label_grid, lay_column, lay_row, muted_label, named, narrow
from app.views.widgets.buttons import OutlinedButton
from app.views.widgets.disclosure import Disclosure
from app.views.widgets.steady import ComboBox, SpinBox
from core.config.node_count import NodeCount
from core.launch.nodes.job import DEFAULT_PORT, PORTS

MOST_MACHINES: Final = 1024
ALONE: Final = "1: this one alone"
ALL: Final = "all at the start, then what is left"
_INDENT: Final = 16
_LABELS_PX: Final = 116


class NodesGroup(QWidget):
    """It asks nothing of the network itself.

    Signals:
        changed: Another number, interface or port.
        opened: It was unfolded.
        waiting_requested: The machines of the run that waits are to be shown.
    """

    changed = Signal()
    opened = Signal()
    waiting_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._why_not = ""
        self._wanted_nic = ""
        self._is_known = False
        self.toggle = Disclosure("Severa&l machines", "Train on this computer and others at the same time")
        self.toggle.toggled.connect(self._on_toggled)
        self.summary = muted_label(wraps=False)
        self.waiting = named(OutlinedButton("Show"), "Show the machines", "Show which machines are there")
        self.waiting.clicked.connect(self.waiting_requested)
        self.waiting.hide()
        self.machines = self._spin("Machines", 1, MOST_MACHINES, "How many machines train, this one counted")
        self.machines.setSpecialValueText(ALONE)
        self.least = self._spin(
            "At least", 0, 1, "With how many the run may start. It never trains with fewer, and waits for lost ones."
        )
        self.least.setSpecialValueText(ALL)
        self.nic = named(ComboBox(), "Network interface", "The interface of this computer that the others reach")
        narrow(self.nic, 12)
        self.port = self._spin(
            "Port", 1024, 65_536 - PORTS, f"The first of the {PORTS} ports of this computer that are used"
        )
        self.port.setGroupSeparatorShown(False)
        self.port.setValue(DEFAULT_PORT)
        self.about = muted_label(ABOUT)
        self.why_not = muted_label()
        self._fields = QWidget()
        grid = label_grid(self._fields, _LABELS_PX, line_spacing=6)
        for row, (text, field) in enumerate(
            (("Machines", self.machines), ("At least", self.least), ("Interface", self.nic), ("Port", self.port))
        ):
            label = QLabel(text)
            label.setBuddy(field)
            grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1)
        self._body = QWidget()
        lay_column(self._body, self._fields, self.about, self.why_not, spacing=8, margins=(_INDENT, 0, 0, 0))
        head = lay_row(None, self.toggle, None, self.summary, self.waiting, spacing=8, margins=(_INDENT - 6, 0, 0, 0))
        lay_column(self, head, self._body, spacing=8)
        self._body.hide()
        self.machines.valueChanged.connect(self._on_machines_changed)
        for field in (self.least, self.port):
            field.valueChanged.connect(self._on_changed)
        self.nic.activated.connect(self._on_nic_chosen)
        self._show()

    def set_interfaces(self, found: Mapping[str, str]) -> None:
        """Offers this computer's interfaces; loopback comes last, as it leads nowhere else.

        Args:
            found: Name and address.
        """
        chosen = self._wanted_nic or self.nic.currentData()
        self._is_known = True
        order = sorted(found, key=lambda name: (found[name].startswith("127."), name))
        with QSignalBlocker(self.nic):
            self.nic.clear()
            for name in order:
                self.nic.addItem(f"{name} · {found[name]}", name)
                self.nic.setItemData(self.nic.count() - 1, found[name], Qt.ItemDataRole.UserRole + 1)
            self.nic.setCurrentIndex(max(0, self.nic.findData(chosen)) if order else -1)
        self._show()

    def show_why_not(self, text: str) -> None:
        """Why a run cannot be on several machines; empty: it can."""
        if text != self._why_not:
            self._why_not = text
            self._show()

    def nodes(self) -> str:
        """How many, as `RunConfig.nodes` has it; empty: this machine alone."""
        if self._reason() or self.machines.value() == 1:
            return ""
        most, least = self.machines.value(), self.least.value()
        return NodeCount(least or most, most, can_lose=not least).text

    def endpoint(self) -> str:
        address = self.nic.currentData(Qt.ItemDataRole.UserRole + 1)
        return f"{address}:{self.port.value()}" if address else ""

    def interface(self) -> str:
        return str(self.nic.currentData() or "")

    def set_values(self, nodes: str, nic: str, endpoint: str) -> None:
        """Shows these, without telling anything; an interface that is not there leaves the one that is chosen."""
        number = NodeCount.read(nodes or "1")
        port = endpoint.rpartition(":")[2]
        with QSignalBlocker(self.machines), QSignalBlocker(self.least), QSignalBlocker(self.port):
            self.machines.setValue(number.most)
            self.least.setMaximum(number.most)
            self.least.setValue(0 if number.can_lose else number.least)
            if port.isdecimal():
                self.port.setValue(int(port))
        self._wanted_nic = nic
        if (row := self.nic.findData(nic)) >= 0:
            self.nic.setCurrentIndex(row)
        self._show()

    def _spin(self, name: str, least: int, most: int, tip: str) -> SpinBox:
        box = named(SpinBox(), name, tip)
        box.setRange(least, most)
        return box

    def _reason(self) -> str:
        return self._why_not or (NO_INTERFACE if self._is_known and not self.nic.count() else "")

    def _on_machines_changed(self, number: int) -> None:
        with QSignalBlocker(self.least):
            self.least.setMaximum(number)
        self._on_changed()

    def _on_nic_chosen(self, _row: int) -> None:
        self._wanted_nic = self.interface()
        self._on_changed()

    def _on_changed(self, *_: object) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        reason, several = self._reason(), self.machines.value() > 1
        self._fields.setVisible(not reason)
        self.about.setVisible(not reason and several)
        for field in (self.least, self.nic, self.port):
            field.setEnabled(several)
        self.why_not.setText(reason)
        self.why_not.setVisible(bool(reason))
        self.summary.setText(head_text(self.nodes(), self.interface()))

    def _on_toggled(self, on: bool) -> None:
        self._body.setVisible(on)
        if on:
            self.opened.emit()
