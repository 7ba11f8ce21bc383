"""A dataset as the model will see it: counts, the text column, the first samples and documents."""

from __future__ import annotations

from html import escape
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QTextBrowser,
    QWidget,
)

from app.new_run.preview_text import (
    Found,
    chosen_column,
    columns_of,
    document_title,
    fact_lines,
    sample_title,
    visible,
)
from app.style.tones import blend, is_dark, muted, tone
from app.widgets.build import lay_row, muted_label, named
from app.widgets.dialog import Dialog, Role
from app.widgets.notice_bar import Step
from app.widgets.steady import ComboBox
from core.errors import RankdeckError
from core.formatting import count

FIRST_PHASE: Final = "starting"
SHOWN_IDS: Final = 24


class PreviewDialog(Dialog):
    """Shows one look at a dataset. It looks at nothing itself.

    Args:
        dataset: What is looked at.

    Signals:
        look_requested: Look again; True: make all tokens, and keep them.
        cancel_requested: End the look that is going on.
        column_chosen: The option `text_column`; empty: guessed.
    """

    look_requested = Signal(bool)
    cancel_requested = Signal()
    column_chosen = Signal(str)

    def __init__(self, dataset: str, parent: QWidget | None = None) -> None:
        super().__init__(f"Preview of {dataset}", parent)
        self._found: Found | None = None
        self._can_choose = True
        self.doing = named(QLabel(), "Progress")
        self.bar = named(QProgressBar(minimum=0, maximum=0, textVisible=False), "Progress")
        self.cancel = QPushButton("&Cancel")
        self.cancel.clicked.connect(self._on_cancel_clicked)
        self.column = named(ComboBox(), "Text column")
        self.column.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
        self.column.activated.connect(lambda row: self.column_chosen.emit(str(self.column.itemData(row))))
        self._column_label = QLabel("&Text column")
        self._column_label.setBuddy(self.column)
        self.notes = QGridLayout()
        self.notes.setHorizontalSpacing(12)
        self.notes.setVerticalSpacing(4)
        self.notes.setColumnStretch(1, 1)
        self.text = named(QTextBrowser(), "First samples and documents")
        self.text.setTabChangesFocus(True)
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        tip = "Tokenises the whole dataset, counts it exactly and caches the tokens, so that runs start immediately"
        self.again = self.add_button("&Look again", Role.ActionRole)
        self.all = self.add_button("Tokenise &all now", Role.ActionRole, tip)
        self.again.clicked.connect(lambda: self.look_requested.emit(False))
        self.all.clicked.connect(lambda: self.look_requested.emit(True))
        self._lay_out()
        self.show_looking()

    def _lay_out(self) -> None:
        self._going = QWidget()
        lay_row(self._going, self.doing, self.bar, self.cancel, spacing=8, grow=self.bar)
        chosen = lay_row(None, self._column_label, self.column, None, spacing=8)
        parts = (self.notice, self._going, self.notes, chosen, self.text)
        self.lay_out(*parts, grow=self.text, size=(760, 620))

    def show_looking(self) -> None:
        self.notice.clear()
        self.doing.setText(f"Looking: {FIRST_PHASE}")
        self._show_busy(True)

    def show_progress(self, phase: str) -> None:
        self.doing.setText(f"Looking: {phase}")

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        self._show_busy(False)
        self.notice.show_error(error, step)

    def set_can_choose(self, can: bool) -> None:
        """Whether the recipe has a field for the text column."""
        self._can_choose = can

    def show_found(self, found: Found) -> None:
        self._found = found
        self._show_busy(False)
        self._show_facts(fact_lines(found))
        columns = columns_of(found)
        self.column.clear()
        for name, label in columns.items():
            self.column.addItem(label, name)
        self.column.setCurrentIndex(max(0, self.column.findData(chosen_column(found))))
        self.column.setEnabled(self._can_choose)
        self.column.setToolTip("" if self._can_choose else "This recipe has no text column setting")
        self._show_columns(bool(columns))
        self._show_text()
        self.all.setEnabled(not found["tokenised"])

    def _show_busy(self, busy: bool) -> None:
        self._going.setVisible(busy)
        for button in (self.again, self.all):
            button.setEnabled(not busy)
        self.column.setEnabled(not busy and self._can_choose)
        if self._found is None:
            self._show_columns(False)
            self.text.setPlainText("")

    def _show_columns(self, shown: bool) -> None:
        self.column.setVisible(shown)
        self._column_label.setVisible(shown)

    def _show_facts(self, lines: list[tuple[str, str]]) -> None:
        while (item := self.notes.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
                widget.hide()
        for row, (name, value) in enumerate(lines):
            label = muted_label(name, wraps=False)
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            text = QLabel(value, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            text.setAccessibleName(f"{name}: {value}" if name else value)
            self.notes.addWidget(label, row, 0)
            self.notes.addWidget(text, row, 1)

    def _show_text(self) -> None:
        if self._found is None:
            return
        bar = self.text.verticalScrollBar()
        place = bar.value()
        base, accent = self.palette().color(QPalette.ColorRole.Base), tone(self.palette(), "info")
        grounds = (base.name(), blend(accent, base, 0.22 if is_dark(self.palette()) else 0.16).name())
        grey = muted(self.palette()).name()
        parts = [_sample(sample, grounds, grey) for sample in self._found["first_samples"]]
        for number, document in enumerate(self._found["first_documents"], 1):
            head, text = escape(document_title(number, document)), escape(visible(document["text"]))
            parts.append(f"<p><b>{head}</b><br>{text} <span style='color:{grey}'>…</span></p>")
        self.text.setHtml("".join(parts))
        bar.setValue(place)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_text()

    def done(self, result: int) -> None:
        self.cancel_requested.emit()
        super().done(result)

    def _on_cancel_clicked(self) -> None:
        self.cancel_requested.emit()
        self._show_busy(False)
        self.notice.say("info", "Cancelled", "Nothing was changed.")


def _sample(sample: Found, grounds: tuple[str, str], grey: str) -> str:
    """A sample, each token on a ground of its own, and the numbers of the first tokens."""
    tokens = "".join(
        f"<span style='background-color:{grounds[number % 2]}'>{escape(visible(piece, breaks=True))}</span>"
        for number, piece in enumerate(sample["pieces"])
    )
    shown, length = len(sample["pieces"]), sample["length"]
    rest = f"… the first {count(shown)} of {count(length)} tokens" if shown < length else ""
    ids = " ".join(str(number) for number in sample["ids"][:SHOWN_IDS])
    return (
        f"<p><b>{escape(sample_title(sample))}</b><br><span style='white-space:pre-wrap'>{tokens}</span> "
        f"<span style='color:{grey}'>{rest}<br>Token ids: {ids} …</span></p>"
    )
