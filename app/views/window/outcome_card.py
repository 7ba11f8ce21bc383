"""Outcome card: how the run ended or what is wrong with it, and the buttons that do the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QLabel, QMenu, QWidget

from app.views.widgets.action_buttons import OutlinedButton
from app.views.widgets.build import lay_row
from app.views.widgets.card import draw_card
from app.views.widgets.elided_label import ElidedLabel
from app.views.widgets.message import Message

if TYPE_CHECKING:
    from app.state.run_outcome import ModelFile, RunOutcome
    from app.views.window.actions import Actions

NARROW: Final = 760
"""Below this width the buttons stand under the text, which would be squeezed beside them."""


class ModelLine(QWidget):
    """Where the model is, in one line whatever the length of its path, so that its size moves nothing when it comes."""

    def __init__(self) -> None:
        super().__init__()
        self._head = QLabel()
        self._head.setTextFormat(Qt.TextFormat.PlainText)
        self._folder = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        lay_row(self, self._head, self._folder, spacing=4, grow=self._folder)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, as far as there is room for it."""
        return f"{self._head.text()} {self._folder.text()}"

    def show_model(self, model: ModelFile | None) -> None:
        """Shows a model, or nothing."""
        if model is not None:
            self._head.setText(model.head)
            self._folder.set_full_text(model.folder)
            self.setToolTip(model.path)
        self.setVisible(model is not None)


class OutcomeCard(Message):
    """Title, cause and next step, over the tabs; hidden while there is nothing to tell.

    Args:
        actions: Of the window.
        exports: What the run can be exported as.

    Signals:
        log_requested: The name of the log that says more; empty: any.
        folder_requested: Show the model's folder.
        copy_requested: The path of the model, to be copied.
        dismissed: The person has read it.
        balance_requested: Stop the run, and resume it with load balancing.
        smaller_batch_requested: Stop the run, and resume it with this micro-batch and accumulation.
    """

    log_requested = Signal(str)
    folder_requested = Signal()
    copy_requested = Signal(str)
    dismissed = Signal()
    balance_requested = Signal()
    smaller_batch_requested = Signal(int, int)

    def __init__(self, actions: Actions, exports: QMenu, parent: QWidget | None = None) -> None:
        self.outcome: RunOutcome | None = None
        self.model: ModelFile | None = None
        self.show_log = OutlinedButton("Show log")
        self.show_folder = OutlinedButton("Show in folder")
        self.copy_path = OutlinedButton("Copy path")
        self.export = OutlinedButton("Export")
        self.resume = OutlinedButton()
        self.balance = OutlinedButton("Stop and balance…")
        self.balance.setToolTip("Save a checkpoint, stop, and choose how to resume with load balancing")
        self.halve = OutlinedButton("Resume with a smaller micro-batch")  # the number is put in when it is known
        self.halve.setToolTip("Save a checkpoint, stop, and resume from it at once; the global batch stays the same")
        finished = (self.show_log, self.show_folder, self.copy_path, self.export, self.resume)
        buttons = (*finished, self.balance, self.halve)
        super().__init__(buttons, NARROW, parent)
        self.model_line = ModelLine()
        self._texts.insertWidget(1, self.model_line)
        self.show_log.clicked.connect(self._on_log_clicked)
        self.show_folder.clicked.connect(self.folder_requested)
        self.copy_path.clicked.connect(self._on_copy_clicked)
        self.export.open_menu(exports)
        self.resume.clicked.connect(actions.resume.trigger)
        self.balance.clicked.connect(self.balance_requested)
        self.halve.clicked.connect(self._on_halve_clicked)
        self._action = actions.resume
        actions.resume.changed.connect(self._show_resume)
        self._show_resume()
        self.close_button.clicked.connect(self.dismissed)

    def show_outcome(self, outcome: RunOutcome) -> None:
        """Shows how the run ended, or what is wrong with it."""
        self.outcome = outcome
        finished = outcome.kind == "success"
        self._show_resume()
        self.show_log.setVisible(outcome.has_log)
        self.export.setVisible(finished)
        self.resume.setVisible(finished or outcome.resumes)
        self.balance.setVisible(outcome.balances)
        self.halve.setVisible(outcome.smaller_batch is not None)
        if outcome.smaller_batch is not None:
            self.halve.setText(f"Resume with micro-batch {outcome.smaller_batch[0]}")
        self._show_all(outcome)

    def show_model(self, model: ModelFile | None) -> None:
        """Shows what training made, also while it is looked for: the card must not grow later. None: nothing."""
        self.model = model
        if self.outcome is not None and not self.isHidden():
            self._show_all(self.outcome)

    def clear(self) -> None:
        """Takes the card away."""
        self.outcome = self.model = None
        super().clear()

    def _show_all(self, outcome: RunOutcome) -> None:
        made = self.model if outcome.kind == "success" else None
        for button in (self.show_folder, self.copy_path):
            button.setVisible(made is not None)
            button.setEnabled(made is not None and made.size_bytes is not None)
        self.model_line.show_model(made)
        self.show_message(outcome.kind, outcome.title, outcome.text)
        if made is not None:
            self.setAccessibleDescription(f"{made.head} {made.folder}\n{outcome.text}".strip())

    def _show_resume(self) -> None:
        """Names the checkpoint that a failed run is resumed from; the header's button has the action's mnemonic."""
        step = self.outcome.resume_step if self.outcome is not None else None
        text = self._action.text().replace("&", "")
        self.resume.setText(text if step is None else f"Resume from step {step:,}…")
        self.resume.setEnabled(self._action.isEnabled())
        self.resume.setToolTip(self._action.toolTip())
        self.resume.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """As narrow as its buttons; the text wraps."""
        return QSize(self._buttons.minimumSize().width() + 64, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_card(self, self.kind)

    def _on_log_clicked(self) -> None:
        log = self.outcome.log if self.outcome is not None else None
        self.log_requested.emit(log or "")

    def _on_halve_clicked(self) -> None:
        if self.outcome is not None and self.outcome.smaller_batch is not None:
            self.smaller_batch_requested.emit(*self.outcome.smaller_batch)

    def _on_copy_clicked(self) -> None:
        if self.model is not None:
            self.copy_requested.emit(self.model.path)
