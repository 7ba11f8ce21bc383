"""Config of the shown run: differences from the defaults first, the whole run.toml folded below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from app.widgets.build import bold_label, code_box, lay_column, lay_row, muted_label, scrolled
from app.widgets.card import Card
from app.widgets.disclosure import Disclosure
from app.widgets.empty_note import WithNote
from app.widgets.notice_bar import NoticeBar
from core.config.run_config import RunConfig
from core.formatting import UNKNOWN

if TYPE_CHECKING:
    from core.compare.settings import ChangedSetting

NOTHING: Final = "Choose a run on the left to see its settings."


class ConfigView(QWidget):
    """A run's settings and notes, read-only.

    Signals:
        copy_requested: The `RunConfig` that is to fill New run.
    """

    copy_requested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._config: RunConfig | None = None
        self.notice = NoticeBar()
        self.title = bold_label()
        self.notes = muted_label()
        self.notes.setTextFormat(Qt.TextFormat.PlainText)
        self.notes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notes.hide()
        self.text = code_box("run.toml", framed=False)
        self.text.hide()
        self.whole = Disclosure("All settings (run.toml)", "Show the run's file of settings")
        self.whole.toggled.connect(self._on_unfolded)
        self.copy = QPushButton("Cop&y to New run")
        self.copy.setToolTip("Fill New run with this run's settings")
        self.copy.clicked.connect(self._on_copy_clicked)
        card = Card()
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(24)
        self.grid.setVerticalSpacing(6)
        # Words that wrap ask for no width of their own.
        for column, share in enumerate((2, 2, 1), 1):
            self.grid.setColumnStretch(column, share)
        head = lay_row(None, self.title, None, self.copy, spacing=8)
        lay_column(card, head, self.grid, self.notes, spacing=10, margins=(16, 10, 12, 12))
        body = QWidget()
        page = lay_column(body, card, lay_row(None, self.whole, None), self.text, spacing=4, grow=self.text)
        page.addStretch(0)
        body.setAutoFillBackground(False)
        self._scroll = scrolled(body)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.viewport().setAutoFillBackground(False)
        self.page = WithNote(self._scroll, NOTHING)
        lay_column(self, self.notice, self.page, grow=self.page)

    def show_config(
        self, text: str | None, config: RunConfig | None = None, changed: Sequence[ChangedSetting] = ()
    ) -> None:
        """Shows run.toml, its meaning and its differences from the defaults; None when no run is shown."""
        self._config = config
        self.copy.setEnabled(config is not None)
        self.notice.clear()
        self.page.set_empty(text is None)
        if self.text.toPlainText() != (text or ""):
            self.text.setPlainText(text or "")
        count = len(changed)
        self.title.setText(
            f"{count} setting{' differs' if count == 1 else 's differ'} from the defaults"
            if count
            else "Every setting has its default"
        )
        while (item := self.grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        for line, one in enumerate(changed):
            default = muted_label("" if one.default == UNKNOWN else f"default {one.default}")
            value = QLabel(one.text)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            for column, label in enumerate((QLabel(one.label), value, default)):
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setToolTip(one.name)
                label.setWordWrap(column > 0)
                # In the cell, it would get the height of a narrow label.
                label.setAlignment(Qt.AlignmentFlag.AlignTop)
                self.grid.addWidget(label, line, column)

    def show_notes(self, notes: Sequence[str]) -> None:
        self.notes.setText("\n".join(notes))
        self.notes.setVisible(bool(notes))

    def _on_unfolded(self, on: bool) -> None:
        self.text.setVisible(on)
        lines = self.text.document().blockCount() + 2
        self.text.setMinimumHeight(lines * self.text.fontMetrics().lineSpacing() if on else 0)

    def _on_copy_clicked(self) -> None:
        if self._config is not None:
            self.copy_requested.emit(self._config)
