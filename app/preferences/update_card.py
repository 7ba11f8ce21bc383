"""Card of Settings on updates: the address to ask, the last check's result, and the newer version's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton

from app.form.field_row import ProblemLabel
from app.preferences.update_text import UpdateError, check_address
from app.widgets.build import bold_label, lay_column, lay_row, muted_label, named
from app.widgets.card import Card
from core.errors import RankdeckError

MARGINS: Final = (16, 12, 16, 12)


@dataclass(frozen=True, slots=True)
class UpdateStatus:
    """Contents of the card.

    Attributes:
        address: The server; empty: none is asked.
        text: The last check's result.
        page: Of a newer version; empty: there is none, or it has no page.
    """

    address: str = ""
    text: str = ""
    page: str = ""


NO_UPDATES: Final = UpdateStatus()


class UpdateCard(Card):
    """Emits the person's intents; `show_status` shows the outcome.

    Signals:
        address_chosen: Another address, checked; may be empty.
        check_requested: Ask the server now.
        page_requested: Open the newer version's page.
        resized: Another height is needed.
    """

    address_chosen = Signal(str)
    check_requested = Signal()
    page_requested = Signal()
    resized = Signal()

    def __init__(self, status: UpdateStatus) -> None:
        super().__init__()
        self._address = status.address
        self.address = named(QLineEdit(status.address), "Address of updates")
        self.address.setPlaceholderText("Update address (leave empty to turn updates off)")
        self.address.editingFinished.connect(self._on_edited)
        self.check = _button("Check &now")
        self.check.clicked.connect(self._on_check_clicked)
        self.result: QLabel = muted_label()
        self.problem = ProblemLabel()
        self.page = _button("Open &page")
        self.page.clicked.connect(self.page_requested)
        address = lay_row(None, self.address, self.check, spacing=8, grow=self.address)
        found = lay_row(None, self.page, None)
        lay_column(self, bold_label("Updates"), address, self.result, self.problem, found, spacing=8, margins=MARGINS)
        self.show_status(status)

    def show_status(self, status: UpdateStatus) -> None:
        """Shows the last check's result."""
        self.result.setText(status.text)
        self.check.setEnabled(bool(self._address))
        self.check.setText("Check &now")
        self.page.setVisible(bool(status.page))
        self.resized.emit()

    def _on_edited(self) -> None:
        text = self.address.text().strip()
        try:
            address = check_address(text) if text else ""
        except UpdateError as error:
            self._show_problem(error)
            return
        self._show_problem(None)
        if address != self._address:
            self._address = address
            self.address_chosen.emit(address)

    def _on_check_clicked(self) -> None:
        self.check.setEnabled(False)
        self.check.setText("Checking…")
        self.check_requested.emit()

    def _show_problem(self, error: RankdeckError | None) -> None:
        self.problem.set_problem(error)
        self.result.setVisible(error is None)
        self.resized.emit()


def _button(text: str) -> QPushButton:
    button = QPushButton(text)
    button.setAutoDefault(False)
    return button
