"""One row of the form: label, editor, unit, and under them what is wrong with the value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QToolButton,
    QWidget,
)

from app.views.style.tones import tone
from app.views.widgets.build import icon_button, lay_row, muted_label, narrow
from core.config.fields import FieldSpec
from core.errors import RankdeckError, sentences

_BOX_LINES: Final = 3


class ToneLabel(QLabel):
    """A sentence in the error or the warning colour of whatever theme is on; hidden while there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._tone = "error"
        self._colour()
        self.hide()

    def say(self, text: str, tone_name: str) -> None:
        """Shows a text, or nothing."""
        self._tone = tone_name
        self._colour()
        self.setText(text)
        self.setVisible(bool(text))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        colour = tone(QGuiApplication.palette(), self._tone)
        if self.palette().color(QPalette.ColorRole.WindowText) != colour:  # setting it comes back as a change
            palette = QPalette()
            palette.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(palette)


class ProblemLabel(ToneLabel):
    """What is wrong, under the field it concerns."""

    def set_problem(self, error: RankdeckError | None) -> None:
        """Shows an error's cause and next step, or nothing."""
        text = "" if error is None else f"✕ {sentences(_capital(_short(error)), error.window_step)}"
        self.say(re.sub(r"\d{7,}", lambda number: f"{int(number[0]):,}", text), "error")


def _short(error: RankdeckError) -> str:
    """The cause without the "Label (name): " that a command line needs and a form does not."""
    head, found, rest = error.cause.partition("): ")
    return rest if found and len(head) < 60 and "(" in head else error.cause


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


Editor: TypeAlias = QLineEdit | QComboBox | QCheckBox | QPlainTextEdit


class FieldRow(QObject):
    """Editor for one `FieldSpec`. It holds text and never refuses any: what is wrong is shown under it.

    Args:
        spec: The field.
        parent: Where its widgets live.
        wording: Values in their order and what each is called; the field is then chosen from these.
    """

    edited = Signal(str)

    def __init__(self, spec: FieldSpec, parent: QWidget, wording: Mapping[str, str] | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self._wording = wording or {choice: choice for choice in spec.choices}
        self.label = QLabel(spec.label, parent)
        self.problem = ProblemLabel(parent)
        self.browse: QToolButton | None = None
        self._is_wrong = False
        self.editor = self._make_editor(parent)
        self.editor.installEventFilter(self)
        self.label.setBuddy(self.editor)
        self._help = spec.help + ("" if spec.type in ("bool", "str") else f"\n{_capital(spec.allowed())}.")
        self._show_help("")
        self.editor.setAccessibleName(spec.label + (f" in {spec.unit}" if spec.unit else ""))
        self.editor.setAccessibleDescription(spec.help)
        self.editor.setObjectName(f"field_{spec.name}")
        self.unit = muted_label(spec.unit, wraps=False)
        self.unit.setParent(parent)
        self.unit.setVisible(bool(spec.unit))

    def _make_editor(self, parent: QWidget) -> Editor:
        if self.spec.type == "bool":
            box = QCheckBox(parent)
            box.toggled.connect(self._on_edited)
            return box
        if self._wording:
            combo = QComboBox(parent)
            for value, name in self._wording.items():
                combo.addItem(name, value)
            narrow(combo)
            combo.currentTextChanged.connect(self._on_edited)
            return combo
        if self.spec.type == "variables":
            return self._make_text_box(parent)
        line = QLineEdit(parent)
        line.setMinimumWidth(48)
        line.textEdited.connect(self._on_edited)
        if self.spec.type == "path":
            self._add_browse(parent)
        return line

    def _make_text_box(self, parent: QWidget) -> QPlainTextEdit:
        """A few lines; Tab leaves it, as every other field."""
        box = QPlainTextEdit(parent)
        box.setTabChangesFocus(True)
        box.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        box.setPlaceholderText("NAME=VALUE")
        box.setMinimumWidth(48)
        box.setFixedHeight(box.fontMetrics().lineSpacing() * _BOX_LINES + 2 * box.frameWidth() + 10)
        box.textChanged.connect(self._on_edited)
        return box

    def _add_browse(self, parent: QWidget) -> None:
        folder = self.spec.picks == "folder"
        kind, label = "folder" if folder else "file", self.spec.label
        tip = f"Choose a {kind} for {label}"
        self.browse = icon_button(kind, tip, self._on_browse_clicked, f"Browse for {label}")
        self.browse.setParent(parent)

    def place(self, grid: QGridLayout, row: int) -> int:
        """Puts the row into columns 0 to 2 of `grid`; returns the next free row."""
        beside = Qt.AlignmentFlag.AlignTop if isinstance(self.editor, QPlainTextEdit) else Qt.AlignmentFlag(0)
        grid.addWidget(self.label, row, 0, beside)
        if self.browse is not None:
            # Both columns together: the button ends where fields without a unit do.
            line = lay_row(None, self.editor, self.browse, spacing=grid.horizontalSpacing(), grow=self.editor)
            grid.addLayout(line, row, 1, 1, 2)
        elif self.spec.unit:
            grid.addWidget(self.editor, row, 1)
            grid.addWidget(self.unit, row, 2)
        else:
            grid.addWidget(self.editor, row, 1, 1, 2)
        grid.addWidget(self.problem, row + 1, 1, 1, 2)
        return row + 2

    def text(self) -> str:
        """What was entered, as text."""
        if isinstance(self.editor, QCheckBox):
            return "true" if self.editor.isChecked() else "false"
        if isinstance(self.editor, QPlainTextEdit):
            return self.editor.toPlainText()
        return str(self.editor.currentData()) if isinstance(self.editor, QComboBox) else self.editor.text()

    def set_text(self, text: str) -> None:
        """Shows a value without telling anybody that it was edited."""
        with QSignalBlocker(self.editor):
            if isinstance(self.editor, QCheckBox):
                self.editor.setChecked(text.lower() in ("true", "1", "yes", "on"))
            elif isinstance(self.editor, QComboBox):
                self.editor.setCurrentIndex(max(0, self.editor.findData(text)))
            elif text == self.text():  # else the cursor would jump
                return
            elif isinstance(self.editor, QPlainTextEdit):
                self.editor.setPlainText(text)
            else:
                self.editor.setText(text)

    def set_visible(self, shown: bool) -> None:
        """Shows or hides the whole row."""
        for widget in (self.label, self.editor, self.unit):
            widget.setVisible(shown and (widget is not self.unit or bool(self.spec.unit)))
        self.problem.setVisible(shown and bool(self.problem.text()))

    def set_reason(self, reason: str) -> None:
        """Why this means nothing just now; empty when it does. A box that is ticked can still be cleared."""
        ticked = isinstance(self.editor, QCheckBox) and self.editor.isChecked()
        self.editor.setEnabled(not reason or ticked)
        self._show_help(reason)

    def set_choice(self, value: str, name: str, reason: str = "") -> None:
        """What a value of the list is called just now, and why it cannot be chosen."""
        if isinstance(self.editor, QComboBox):
            row = self.editor.findData(value)
            with QSignalBlocker(self.editor):
                self.editor.setItemText(row, name)
            self.editor.setItemData(row, reason or None, Qt.ItemDataRole.ToolTipRole)
            able = None if not reason else 0  # 0 is Qt's own way to disable an item
            self.editor.setItemData(row, able, Qt.ItemDataRole.UserRole - 1)

    def _show_help(self, reason: str) -> None:
        tip = f"Unavailable: {reason}\n{self._help}" if reason else self._help
        self.label.setToolTip(tip)
        self.editor.setToolTip(tip)

    def set_placeholder(self, text: str) -> None:
        """What an empty field will be, greyed."""
        if isinstance(self.editor, QLineEdit):
            self.editor.setPlaceholderText(text)

    def mark(self, error: RankdeckError | None) -> None:
        """Marks the field as wrong, with the reason, or as right."""
        self.problem.set_problem(error)
        description = self.spec.help if error is None else f"Wrong: {sentences(error.cause, error.window_step)}"
        self.editor.setAccessibleDescription(description)
        self._is_wrong = error is not None
        self._colour()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.editor and event.type() == QEvent.Type.PaletteChange:
            self._colour()
        return super().eventFilter(watched, event)

    def _colour(self) -> None:
        """The text of a wrong value, in the error colour of the theme that is on."""
        palette = QPalette()
        if self._is_wrong:
            palette.setColor(QPalette.ColorRole.Text, tone(QGuiApplication.palette(), "error"))
        own = self.editor.palette()
        shown, wanted = own.color(QPalette.ColorRole.Text), palette.color(QPalette.ColorRole.Text)
        if shown != wanted:  # this changes the palette once more
            self.editor.setPalette(palette)

    def _on_edited(self, *_: object) -> None:
        self.edited.emit(self.spec.name)

    def _on_browse_clicked(self) -> None:
        spec, window, start = self.spec, self.editor.window(), self.text() or str(Path.home())
        if spec.picks == "folder":
            path = QFileDialog.getExistingDirectory(window, spec.label, start)
        elif spec.picks == "file":
            kinds = f"{spec.label} ({spec.patterns});;All files (*)" if spec.patterns else ""
            path, _ = QFileDialog.getOpenFileName(window, spec.label, start, kinds)
        else:
            unasked = QFileDialog.Option.DontConfirmOverwrite
            path, _ = QFileDialog.getSaveFileName(window, spec.label, start, options=unasked)
        if path:
            self.set_text(str(Path(path)))
            self.edited.emit(self.spec.name)


class FieldRows(QWidget):
    """Several rows, by field. What is entered is kept as text; `edited` follows every change by the person."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[str, FieldRow] = {}

    def add_row(self, row: FieldRow, grid: QGridLayout, line: int) -> int:
        """Puts a row into `grid`; returns the next free line."""
        self.rows[row.spec.name] = row
        row.edited.connect(self.edited)
        return row.place(grid, line)

    def texts(self) -> dict[str, str]:
        """What was entered, by field."""
        return {name: row.text() for name, row in self.rows.items()}

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Shows values; fields that are not named keep theirs."""
        for name, row in self.rows.items():
            if name in texts:
                row.set_text(texts[name])

    def show_only(self, names: Collection[str]) -> None:
        """Hides the rows that mean nothing just now."""
        for name, row in self.rows.items():
            row.set_visible(name in names)

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        """Marks the wrong fields with their reason."""
        for name, row in self.rows.items():
            row.mark(problems.get(name))
