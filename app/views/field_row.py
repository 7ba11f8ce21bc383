"""One row of the form: label, editor, unit, and under them what is wrong with the value."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog, QGridLayout, QLabel, QLineEdit, QToolButton, QWidget

from app.views.icons import icon
from app.views.tones import tone
from core.config.fields import FieldSpec
from core.errors import RankdeckError


class ProblemLabel(QLabel):
    """What is wrong, under the field it concerns: a sign, words and the error colour. Hidden while all is well."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._colour()
        self.hide()

    def set_problem(self, error: RankdeckError | None) -> None:
        """Shows an error's cause and next step, or nothing."""
        words = "" if error is None else f"✕ {_short(error)} {error.next_step}".strip()
        self.setText(re.sub(r"\d{7,}", lambda number: f"{int(number[0]):,}", words))
        self.setVisible(error is not None)

    def changeEvent(self, event: QEvent) -> None:
        """Takes the new theme's error colour."""
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        colour = tone(QGuiApplication.palette(), "error")
        if self.palette().color(QPalette.ColorRole.WindowText) != colour:  # setting it comes back as a change
            palette = QPalette()
            palette.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(palette)


def _short(error: RankdeckError) -> str:
    """The cause without the "Label (name): " that a command line needs and a form does not."""
    head, found, rest = error.cause.partition("): ")
    return rest[:1].upper() + rest[1:] if found and len(head) < 60 and "(" in head else error.cause


class FieldRow(QObject):
    """Editor for one `FieldSpec`. It holds text and never refuses any: what is wrong is shown under it."""

    edited = Signal(str)

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(parent)
        self.spec = spec
        self.label = QLabel(spec.label, parent)
        self.problem = ProblemLabel(parent)
        self.browse: QToolButton | None = None
        self.editor = self._make_editor(parent)
        self.label.setBuddy(self.editor)
        help_text = spec.help + ("" if spec.type in ("bool", "str") else f"\n{_sentence(spec.allowed())}")
        self.label.setToolTip(help_text)
        self.editor.setToolTip(help_text)
        self.editor.setAccessibleName(spec.label + (f" in {spec.unit}" if spec.unit else ""))
        self.editor.setAccessibleDescription(spec.help)
        self.editor.setObjectName(f"field_{spec.name}")
        self.unit = QLabel(spec.unit, parent)
        self.unit.setForegroundRole(QPalette.ColorRole.PlaceholderText)

    def _make_editor(self, parent: QWidget) -> QLineEdit | QComboBox | QCheckBox:
        if self.spec.type == "bool":
            box = QCheckBox(parent)
            box.toggled.connect(self._on_edited)
            return box
        if self.spec.type == "choice":
            combo = QComboBox(parent)
            combo.addItems(list(self.spec.choices))
            combo.setMinimumContentsLength(4)
            combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            combo.currentTextChanged.connect(self._on_edited)
            return combo
        line = QLineEdit(parent)
        line.setMinimumWidth(48)
        line.textEdited.connect(self._on_edited)
        if self.spec.type == "path":
            self.browse = QToolButton(parent)
            self.browse.setIcon(icon("folder"))
            self.browse.setToolTip(f"Choose a file for {self.spec.label}")
            self.browse.setAccessibleName(f"Browse for {self.spec.label}")
            self.browse.clicked.connect(self._on_browse_clicked)
        return line

    def place(self, grid: QGridLayout, row: int) -> int:
        """Puts the row into columns 0 to 2 of `grid`; returns the next free row."""
        grid.addWidget(self.label, row, 0)
        if self.browse is not None:
            grid.addWidget(self.editor, row, 1)
            grid.addWidget(self.browse, row, 2)
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
        return self.editor.currentText() if isinstance(self.editor, QComboBox) else self.editor.text()

    def set_text(self, text: str) -> None:
        """Shows a value without telling anybody that it was edited."""
        blocked = self.editor.blockSignals(True)
        if isinstance(self.editor, QCheckBox):
            self.editor.setChecked(text.lower() in ("true", "1", "yes", "on"))
        elif isinstance(self.editor, QComboBox):
            self.editor.setCurrentText(text)
        elif self.editor.text() != text:
            self.editor.setText(text)
        self.editor.blockSignals(blocked)

    def set_placeholder(self, text: str) -> None:
        """What an empty field will be, greyed."""
        if isinstance(self.editor, QLineEdit):
            self.editor.setPlaceholderText(text)

    def mark(self, error: RankdeckError | None) -> None:
        """Marks the field as wrong, with the reason, or as right."""
        self.problem.set_problem(error)
        words = self.spec.help if error is None else f"Wrong: {error.cause} {error.next_step}"
        self.editor.setAccessibleDescription(words)
        palette = QPalette()
        if error is not None:
            palette.setColor(QPalette.ColorRole.Text, tone(palette, "error"))
        self.editor.setPalette(palette)

    def _on_edited(self, *_: object) -> None:
        self.edited.emit(self.spec.name)

    def _on_browse_clicked(self) -> None:
        if not isinstance(self.editor, QLineEdit):
            return
        start = self.editor.text() or str(Path.home())
        path, _ = QFileDialog.getSaveFileName(
            self.editor.window(), self.spec.label, start, options=QFileDialog.Option.DontConfirmOverwrite
        )
        if path:
            self.set_text(str(Path(path)))
            self.edited.emit(self.spec.name)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."
