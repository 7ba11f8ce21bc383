"""Page of other machines: add one with its host key, check it, set it up, remove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QLabel, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.widgets.build import (
    bold_label,
    icon_button,
    lay_column,
    lay_row,
    muted_label,
    named,
    page_title,
    scrolled,
)
from app.widgets.buttons import OutlinedButton, PrimaryButton
from app.widgets.card import Card
from app.widgets.elided_label import ElidedLabel
from app.widgets.machine_widgets import keep_machine_widgets
from app.widgets.notice_bar import NoticeBar, Step
from app.widgets.page import Page
from core.errors import RankdeckError
from core.machines.machine import Machine

FIELD_WIDTH: Final = 420
ABOUT: Final = (
    "Train on another computer over SSH: it runs there, is followed from here, and needs no port but SSH's. Keys come "
    "from ssh-agent or a file; Rankdeck stores no password and no key."
)
NONE_YET: Final = "No other machine yet. Add one above."
# What a person types to add a machine, by the parameters of `core.machines.adding.new_machine`: label and hint.
FIELDS: Final = {
    "name": ("Name", "gpubox"),
    "address": ("Address", "user@host, or a host of ~/.ssh/config"),
    "port": ("Port", "22"),
    "identity": ("Key file", "ssh-agent's keys, and ssh's own"),
    "python": ("Python there", "the one that Set up makes"),
    "runs_dir": ("Runs folder there", "Rankdeck's own"),
}


class MachineCard(Card):
    """One machine.

    Signals:
        check_requested, setup_requested, remove_requested: A button was pressed.
    """

    check_requested = Signal()
    setup_requested = Signal()
    remove_requested = Signal()

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        address = machine.address if machine.port is None else f"{machine.address}, port {machine.port}"
        self.check = self._button("Check", f"Run the doctor on {machine.name}", self.check_requested)
        self.setup = self._button(
            "Set up", f"Make the environment for training on {machine.name}", self.setup_requested
        )
        self.remove = self._button("Remove", f"Forget {machine.name}; nothing changes there", self.remove_requested)
        self.key = muted_label(f"Host key {machine.fingerprint}")
        self.key.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.doing = ElidedLabel()
        self.text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notice = NoticeBar()
        names = lay_row(None, bold_label(machine.name), muted_label(address, wraps=False), None, spacing=8)
        buttons = lay_row(None, *self._buttons(), self.doing, spacing=8, grow=self.doing)
        lay_column(self, names, self.key, buttons, self.notice, self.text, spacing=6, margins=(16, 10, 12, 10))
        self.show_text("")

    def show_doing(self, text: str) -> None:
        """Shows the operation in progress; empty enables the buttons."""
        for button in self._buttons():
            button.setEnabled(not text)
        self.doing.set_full_text(text)
        if text:
            self.notice.clear()

    def show_text(self, text: str) -> None:
        self.text.setText(text)
        self.text.setVisible(bool(text))

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        self.show_doing("")
        self.show_text("")
        self.notice.show_error(error, step)

    def ask(self, title: str, text: str, step: Step) -> None:
        """Asks before something is done that cannot be undone."""
        self.show_doing("")
        self.show_text("")
        self.notice.say("warning", title, text, step)

    def _buttons(self) -> tuple[OutlinedButton, ...]:
        return (self.check, self.setup, self.remove)

    def _button(self, text: str, tip: str, signal: object) -> OutlinedButton:
        button = named(OutlinedButton(text), f"{text} {self.machine.name}", tip)
        button.clicked.connect(signal)
        return button


class MachinesPage(Page):
    """It reaches no machine itself.

    Signals:
        add_requested: What was typed, as `core.machines.adding.new_machine` takes it: show its host key.
        key_confirmed: The host key that is shown is the right one.
        card_made: A `MachineCard`, to be connected.
    """

    add_requested = Signal(object)
    key_confirmed = Signal()
    card_made = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Other machines")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.cards: dict[str, MachineCard] = {}
        self.lines = {name: self._line(*texts) for name, texts in FIELDS.items()}
        self.add = PrimaryButton("&Add…")
        self.add.setToolTip("Show the machine's host key, to be confirmed")
        self.add.clicked.connect(self._on_add_clicked)
        self.doing = ElidedLabel()
        self.notice = NoticeBar()
        self._none = muted_label(NONE_YET)
        self._lay_out()

    def set_machines(self, machines: Sequence[Machine]) -> None:
        """Shows these machines; the card of one that is the same stays."""
        keep_machine_widgets(self._column, self.cards, machines, self._made)
        self._none.setVisible(not self.cards)

    def _made(self, machine: Machine) -> MachineCard:
        card = MachineCard(machine)
        self.card_made.emit(card)
        return card

    def show_doing(self, text: str) -> None:
        """Shows the progress of adding a machine; empty for none."""
        self.add.setEnabled(not text)
        self.doing.set_full_text(text)
        if text:
            self.notice.clear()

    def ask_for_key(self, address: str, fingerprint: str, key_type: str) -> None:
        """Shows a host key that is not known yet."""
        self.show_doing("")
        self.notice.say(
            "warning",
            f"{address} shows this host key",
            f"{fingerprint} ({key_type}). Compare it with what the machine says itself: ssh-keygen -lf FILE, or ask "
            "its administrator.",
            Step("This is the &right key", self.key_confirmed.emit),
        )

    def show_added(self, machine: Machine) -> None:
        self.show_doing("")
        self.notice.say("info", f"{machine.name} was added", "Set it up, or check it if it has PyTorch already.")
        for line in self.lines.values():
            line.clear()

    def show_removed(self, name: str, text: str) -> None:
        """Says which files stay on a removed machine."""
        self.notice.say("info", f"{name} was removed", text)

    def show_error(self, error: RankdeckError) -> None:
        self.show_doing("")
        self.notice.show_error(error)

    def _line(self, name: str, hint: str) -> QLineEdit:
        line = named(QLineEdit(placeholderText=hint), name)
        line.setMaximumWidth(FIELD_WIDTH)
        line.returnPressed.connect(self._on_add_clicked)
        return line

    def _lay_out(self) -> None:
        title = page_title("Other machines")
        close = icon_button("close", "Close this page (Esc)", self.close_requested.emit, "Close")
        close.setAutoRaise(True)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for line in self.lines.values():
            label = QLabel(line.accessibleName())
            label.setMinimumHeight(line.sizeHint().height())  # a form's labels stand at the top of their row
            label.setBuddy(line)
            form.addRow(label, line)
        head = Card()
        head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        row = lay_row(None, title, None, close, spacing=8)
        add = lay_row(None, self.add, self.doing, spacing=8, grow=self.doing)
        lay_column(head, row, muted_label(ABOUT), form, add, self.notice, spacing=8, margins=(16, 8, 8, 10))
        body = QWidget()
        self._column = QVBoxLayout()
        self._column.setSpacing(8)
        lay_column(body, head, self._none, self._column, None, spacing=8, margins=(8, 8, 8, 8))
        lay_column(self, scrolled(body))

    def _on_add_clicked(self) -> None:
        if self.add.isEnabled():
            self.add_requested.emit({name: line.text().strip() for name, line in self.lines.items()})
