"""Outcome card: how the run ended or what is wrong with it, and the buttons that do the next step."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QMenu, QWidget

from app.state.run_outcome import ModelFile, RunOutcome
from app.views.style.icons import icon
from app.views.widgets.action_buttons import OutlinedButton
from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row
from app.views.widgets.card import Card
from app.views.window.actions import Actions

_SIGNS: Final = {"error": "error", "warning": "warning", "success": "state-finished"}
_ICON_PX: Final = 20
NARROW: Final = 760
"""Below this width the buttons stand under the text, which would be squeezed beside them."""


class OutcomeCard(Card):
    """Title, cause and next step, over the tabs; hidden while there is nothing to tell.

    Args:
        actions: Of the window.
        exports: What the run can be exported as.

    Signals:
        log_requested: The name of the log that says more; empty: any.
        folder_requested: Show the model's folder.
        copy_requested: The path of the model, to be copied.
        dismissed: The person has read it.
    """

    log_requested = Signal(str)
    folder_requested = Signal()
    copy_requested = Signal(str)
    dismissed = Signal()

    def __init__(self, actions: Actions, exports: QMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.outcome: RunOutcome | None = None
        self.model: ModelFile | None = None
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON_PX, _ICON_PX)
        self._title = bold_label()
        self._text = QLabel()
        for label in (self._title, self._text):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.show_log = OutlinedButton("Show log")
        self.show_log.clicked.connect(self._on_log_clicked)
        self.show_folder = OutlinedButton("Show in folder")
        self.show_folder.clicked.connect(self.folder_requested)
        self.copy_path = OutlinedButton("Copy path")
        self.copy_path.clicked.connect(self._on_copy_clicked)
        self.export = OutlinedButton("Export")
        self.export.open_menu(exports)
        self.resume = OutlinedButton()
        self.resume.clicked.connect(actions.resume.trigger)
        self._action = actions.resume
        actions.resume.changed.connect(self._show_resume)
        self._show_resume()
        self.close_button = icon_button("close", "Dismiss this message", self._on_closed)
        self.close_button.setAutoRaise(True)
        self._lay_out()
        self.hide()

    def _lay_out(self) -> None:
        lines = lay_column(None, self._title, self._text, spacing=2)
        message = lay_row(None, self._icon, lines, spacing=12, grow=lines)
        message.setAlignment(self._icon, Qt.AlignmentFlag.AlignTop)
        self._buttons = lay_row(
            None, None, self.show_log, self.show_folder, self.copy_path, self.export, self.resume,
            spacing=8,
        )  # fmt: skip
        self._parts = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._parts.setSpacing(8)
        self._parts.addLayout(message, 1)
        self._parts.addLayout(self._buttons)
        row = lay_row(self, self._parts, self.close_button, spacing=8, margins=(16, 10, 8, 10), grow=self._parts)
        row.setAlignment(self.close_button, Qt.AlignmentFlag.AlignTop)

    @property
    def title(self) -> str:
        """What the first line says; empty while the card is hidden."""
        return self._title.text() if not self.isHidden() else ""

    @property
    def text(self) -> str:
        """Cause and next step, or what was made."""
        return self._text.text()

    def show_outcome(self, outcome: RunOutcome) -> None:
        """Shows how the run ended, or what is wrong with it."""
        self.outcome = outcome
        self.set_edge(outcome.kind)
        self._icon.setPixmap(icon(_SIGNS[outcome.kind], outcome.kind).pixmap(_ICON_PX, _ICON_PX))
        self._title.setText(outcome.title)
        finished = outcome.kind == "success"
        self._show_resume()
        self.show_log.setVisible(outcome.has_log)
        self.export.setVisible(finished)
        self.resume.setVisible(finished or outcome.resumes)
        self._show_text()
        self.setAccessibleName(f"{outcome.kind}: {outcome.title}")
        self.show()

    def show_model(self, model: ModelFile | None) -> None:
        """Shows what training made; None: nothing, or that is not known yet."""
        self.model = model
        self._show_text()

    def clear(self) -> None:
        """Takes the card away."""
        self.outcome = self.model = None
        self.hide()

    def _show_text(self) -> None:
        if self.outcome is None:
            return
        has_model = self.outcome.kind == "success" and self.model is not None
        made = self.model.text if has_model and self.model is not None else ""
        text = "\n".join(part for part in (made, self.outcome.text) if part)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        self.show_folder.setVisible(has_model)
        self.copy_path.setVisible(has_model)
        self.setAccessibleDescription(text)
        self._turn()

    def _show_resume(self) -> None:
        """Names the checkpoint that a failed run is resumed from; the header's button has the action's mnemonic."""
        step = self.outcome.resume_step if self.outcome is not None else None
        text = self._action.text().replace("&", "")
        self.resume.setText(text if step is None else f"Resume from step {step:,}…")
        self.resume.setEnabled(self._action.isEnabled())
        self.resume.setToolTip(self._action.toolTip())
        self.resume.updateGeometry()

    def _turn(self) -> None:
        needed = self._buttons.sizeHint().width()
        narrow = self.width() < max(NARROW, 2 * needed)
        ways = QBoxLayout.Direction
        self._parts.setDirection(ways.TopToBottom if narrow else ways.LeftToRight)

    def minimumSizeHint(self) -> QSize:
        """As narrow as its buttons; the text wraps."""
        return QSize(self._buttons.minimumSize().width() + 64, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange and self.outcome is not None:
            kind = self.outcome.kind
            self._icon.setPixmap(icon(_SIGNS[kind], kind).pixmap(_ICON_PX, _ICON_PX))
        super().changeEvent(event)

    def _on_log_clicked(self) -> None:
        log = self.outcome.log if self.outcome is not None else None
        self.log_requested.emit(log or "")

    def _on_copy_clicked(self) -> None:
        if self.model is not None:
            self.copy_requested.emit(self.model.path)

    def _on_closed(self) -> None:
        self.hide()
        self.dismissed.emit()
