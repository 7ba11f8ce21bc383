"""Outcome of a run: a line in place of its progress if it went well; a card below the tabs if something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.build import lay_row
from app.widgets.buttons import Chip, OutlinedButton
from app.widgets.card import draw_card
from app.widgets.elided_label import ElidedLabel
from app.widgets.message import Message

if TYPE_CHECKING:
    from app.run.run_outcome import ModelFile, RunOutcome

# Below this width the buttons stand under the text, which would be squeezed beside them.
NARROW: Final = 760


class OutcomeLine(QWidget):
    """The outcome of a successful run and its model, in the place of the progress, so that nothing moves."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ElidedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.model = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self.model.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.show_folder, self.copy_path = Chip("Show in folder", "Show the model in its folder"), Chip("Copy path")
        self.show_log = Chip("Show log")
        chips = (self.show_log, self.show_folder, self.copy_path)
        lay_row(self, self.title, self.model, *chips, spacing=8, grow=self.model)
        self.setFixedHeight(self.show_folder.sizeHint().height())
        self.hide()

    def show_outcome(self, outcome: RunOutcome, model: ModelFile | None) -> None:
        """Shows the outcome; the folder's buttons wait for the model that is still looked for."""
        self.title.set_full_text(outcome.title)
        made = "" if model is None else f"{model.head} {model.folder}"
        self.model.set_full_text(" · ".join(part for part in (outcome.text, made) if part))
        self.show_log.setVisible(outcome.has_log)
        for button in (self.show_folder, self.copy_path):
            button.setVisible(model is not None)
            button.setEnabled(model is not None and model.size_bytes is not None)
        self.setAccessibleName(outcome.title)
        self.setAccessibleDescription(self.model.full_text)
        self.show()


class OutcomeCard(Message):
    """Title, cause and next step, below the tabs; hidden while there is nothing to tell, or all went well.

    It has no Resume button: the header's is in sight, and two would ask which is the right one.

    Attributes:
        line: The outcome of a successful run, for its header.

    Signals:
        log_requested: The name of the log that says more; empty: any.
        balance_requested: Stop the run, and resume it with load balancing.
        smaller_batch_requested: Stop the run, and resume it with this micro-batch and accumulation.
    """

    log_requested = Signal(str)
    folder_requested = Signal()
    copy_requested = Signal(str)
    balance_requested = Signal()
    smaller_batch_requested = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self._key: tuple[str, ...] = ()
        self._dismissed: tuple[str, ...] = ()
        self.outcome: RunOutcome | None = None
        self.model: ModelFile | None = None
        self.show_log = OutlinedButton("Show log")
        self.line = OutcomeLine()
        self.balance = OutlinedButton("Stop and balance…")
        self.balance.setToolTip("Save a checkpoint, stop, and choose how to resume with load balancing")
        self.halve = OutlinedButton("Resume with a smaller micro-batch")  # the number is put in when it is known
        self.halve.setToolTip("Save a checkpoint, stop, and resume from it at once; the global batch stays the same")
        super().__init__((self.show_log, self.balance, self.halve), NARROW, parent)
        for button in (self.show_log, self.line.show_log):
            button.clicked.connect(self._on_log_clicked)
        self.line.show_folder.clicked.connect(self.folder_requested)
        self.line.copy_path.clicked.connect(self._on_copy_clicked)
        self.balance.clicked.connect(self.balance_requested)
        self.halve.clicked.connect(self._on_halve_clicked)
        self.close_button.clicked.connect(self._on_dismissed)

    def show_outcome(self, outcome: RunOutcome | None, word: str) -> None:
        """Shows the end, the failure or the fallback of a run in state `word`.

        A card that was dismissed stays away until the state changes.
        """
        if outcome is None:
            self._key = ()
            self.clear()
            return
        # The title of a success gets more precise while the run is read.
        self._key = (word, outcome.kind, "" if outcome.kind == "success" else outcome.title)
        if self._key == self._dismissed or outcome == self.outcome:
            return
        self._dismissed = ()
        self.outcome = outcome
        self.show_log.setVisible(outcome.has_log)
        self.balance.setVisible(outcome.balances)
        self.halve.setVisible(outcome.smaller_batch is not None)
        if outcome.smaller_batch is not None:
            self.halve.setText(f"Resume with micro-batch {outcome.smaller_batch[0]}")
        self._show_all(outcome)

    def show_model(self, model: ModelFile | None) -> None:
        """Shows the model that training made, with a size or while it is looked for; None for none."""
        self.model = model
        if self.outcome is not None:
            self._show_all(self.outcome)

    def forget(self) -> None:
        self._key = self._dismissed = ()
        self.clear()

    def clear(self) -> None:
        self.outcome = self.model = None
        self.line.hide()
        super().clear()

    def _show_all(self, outcome: RunOutcome) -> None:
        if outcome.kind == "success":
            self.hide()
            self.line.show_outcome(outcome, self.model)
        else:
            self.line.hide()
            self.show_message(outcome.kind, outcome.title, outcome.text)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._buttons.minimumSize().width() + 64, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_card(self, self.kind)

    def _on_dismissed(self) -> None:
        self._dismissed = self._key

    def _on_log_clicked(self) -> None:
        log = self.outcome.log if self.outcome is not None else None
        self.log_requested.emit(log or "")

    def _on_halve_clicked(self) -> None:
        if self.outcome is not None and self.outcome.smaller_batch is not None:
            self.smaller_batch_requested.emit(*self.outcome.smaller_batch)

    def _on_copy_clicked(self) -> None:
        if self.model is not None:
            self.copy_requested.emit(self.model.path)
