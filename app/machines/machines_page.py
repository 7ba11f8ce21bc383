"""Page of other machines: their state, a check, and the set-up of the environment that trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.widgets.build import bold_label, icon_button, lay_column, lay_row, muted_label, named, page_title, scrolled
from app.widgets.buttons import OutlinedButton
from app.widgets.card import Card
from app.widgets.elided_label import ElidedLabel
from app.widgets.notice_bar import NoticeBar
from app.widgets.page import Page
from core.errors import RankdeckError
from core.machines.machine import Machine

ABOUT: Final = (
    "Train on another computer over SSH: it runs there, is followed from here, and needs no port but SSH's. To add a "
    "machine, type in a terminal:  rankdeck machines add gpubox me@gpubox.lan"
)


class MachineCard(Card):
    """One machine.

    Signals:
        check_requested, setup_requested: A button was pressed.
    """

    check_requested = Signal()
    setup_requested = Signal()

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        address = machine.address if machine.port is None else f"{machine.address}, port {machine.port}"
        self.check = named(OutlinedButton("Check"), f"Check {machine.name}", f"Run the doctor on {machine.name}")
        self.check.clicked.connect(self.check_requested)
        tip = f"Make the environment for training on {machine.name}"
        self.setup = named(OutlinedButton("Set up"), f"Set up {machine.name}", tip)
        self.setup.clicked.connect(self.setup_requested)
        self.state = ElidedLabel()
        self.text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notice = NoticeBar()
        names = lay_row(None, bold_label(machine.name), muted_label(address, wraps=False), None, spacing=8)
        buttons = lay_row(None, self.check, self.setup, self.state, spacing=8, grow=self.state)
        lay_column(self, names, buttons, self.notice, self.text, spacing=6, margins=(16, 10, 12, 10))
        self.show_text("")

    def show_doing(self, text: str) -> None:
        """Show the operation in progress; empty enables the buttons."""
        for button in (self.check, self.setup):
            button.setEnabled(not text)
        self.state.set_full_text(text)
        if text:
            self.notice.clear()

    def show_text(self, text: str) -> None:
        self.text.setText(text)
        self.text.setVisible(bool(text))

    def show_error(self, error: RankdeckError) -> None:
        self.show_doing("")
        self.show_text("")
        self.notice.show_error(error)


class MachinesPage(Page):
    """The list of machines; it reaches none itself.

    Signals:
        card_made: A `MachineCard`, to be connected.
    """

    card_made = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Other machines")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.cards: dict[str, MachineCard] = {}
        self.notice = NoticeBar()
        close = icon_button("close", "Close this page (Esc)", self.close_requested.emit, "Close")
        close.setAutoRaise(True)
        about = muted_label(ABOUT)
        about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        head = Card()
        head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        row = lay_row(None, page_title("Other machines"), None, close, spacing=8)
        lay_column(head, row, about, self.notice, spacing=8, margins=(16, 8, 8, 10))
        body = QWidget()
        self._column = QVBoxLayout()
        self._column.setSpacing(8)
        lay_column(body, head, self._column, None, spacing=8, margins=(8, 8, 8, 8))
        lay_column(self, scrolled(body))

    def set_machines(self, machines: Sequence[Machine]) -> None:
        """Show these machines."""
        self.notice.clear()
        if [card.machine for card in self.cards.values()] == list(machines):
            return
        for card in self.cards.values():
            self._column.removeWidget(card)
            card.deleteLater()
        self.cards = {machine.name: MachineCard(machine) for machine in machines}
        for card in self.cards.values():
            self._column.addWidget(card)
            self.card_made.emit(card)
