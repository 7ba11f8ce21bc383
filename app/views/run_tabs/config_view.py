"""Config of the shown run: its run.toml with its notes, and a button that copies it to New run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.views.widgets.build import code_box, lay_column, lay_row
from app.views.widgets.empty_note import WithNote
from app.views.widgets.notice_bar import NoticeBar
from core.config.run_config import RunConfig

NOTHING: Final = "Choose a run on the left to see its settings."


class ConfigView(QWidget):
    """The text of run.toml, read-only.

    Signals:
        copy_requested: The `RunConfig` that is to fill New run.
    """

    copy_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._config: RunConfig | None = None
        self._toml = ""
        self._notes: tuple[str, ...] = ()
        self.notice = NoticeBar()
        self.text = code_box("run.toml", framed=False)
        self.copy = QPushButton("Cop&y to New run")
        self.copy.setToolTip("Fill New run with this run's settings")
        self.copy.clicked.connect(self._on_copy_clicked)
        body = QWidget()
        lay_column(body, lay_row(None, None, self.copy, margins=(8, 4, 8, 4)), self.text, grow=self.text)
        self.page = WithNote(body, NOTHING)
        lay_column(self, self.notice, self.page, grow=self.page)

    def show_config(self, text: str | None, config: RunConfig | None = None) -> None:
        """Shows a run's file and what it means; None when no run is shown."""
        self._config = config
        self.copy.setEnabled(config is not None)
        self.notice.clear()
        self.page.set_empty(text is None)
        self._toml = text or ""
        self._show_text()

    def show_notes(self, notes: Sequence[str]) -> None:
        """Shows how the run's devices share the work."""
        if tuple(notes) != self._notes:
            self._notes = tuple(notes)
            self._show_text()

    def _show_text(self) -> None:
        """The notes as comments over the file: together they scroll, and what is copied is still TOML."""
        comments = "".join(f"# {note}\n" for note in self._notes)
        text = f"{comments}\n{self._toml}" if comments and self._toml else self._toml
        if self.text.toPlainText() != text:
            bar = self.text.verticalScrollBar()
            place = bar.value()
            self.text.setPlainText(text)
            bar.setValue(place)

    def _on_copy_clicked(self) -> None:
        if self._config is not None:
            self.copy_requested.emit(self._config)
