"""Row of a form: label, editor and unit, with the value's problem below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from PySide6.QtCore import QObject, QPointF, QRect, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QToolButton,
    QWidget,
)

from app.form.draft_fields import is_given, text_of
from app.form.remedies import Remedies
from app.style.tones import muted, tone
from app.widgets.build import icon_button, lay_row, narrow
from app.widgets.notice_bar import Step
from app.widgets.steady import ComboBox
from app.widgets.tone_label import ToneLabel
from core.config.fields import FieldSpec
from core.errors import ConfigError, RankdeckError, sentences

_BOX_LINES: Final = 3
# Left of labels; the dots of changed fields stand in it.
MARGIN: Final = 16
# Room for the longest label of one line, so that editors of all sections stand in one column.
LABEL_WIDTH: Final = 124
EDITOR_HEIGHT: Final = 28
DOT_WIDTH: Final = 12
_DOT_RADIUS: Final = 3.0
_UNIT_GAP: Final = 8
# Below this width the unit gives way to the value.
_UNIT_LEAST: Final = 88


class ChangedDot(QAbstractButton):
    """A button drawn as a dot, which resets its field. Its place keeps its width while it is hidden."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedWidth(DOT_WIDTH)
        self.setAccessibleName(f"Reset {label}")
        self.hide()

    def sizeHint(self) -> QSize:
        return QSize(DOT_WIDTH, 24)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        accent, centre = tone(self.palette(), "accent"), QPointF(DOT_WIDTH / 2, self.height() / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(accent)
        painter.drawEllipse(centre, _DOT_RADIUS, _DOT_RADIUS)
        if self.hasFocus() or self.underMouse():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(accent, 1))
            painter.drawEllipse(centre, _DOT_RADIUS + 2, _DOT_RADIUS + 2)


class UnitEdit(QLineEdit):
    """An editor of one line with its unit, muted, at its right end."""

    def __init__(self, unit: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.unit = ""
        self.set_unit(unit)

    def set_unit(self, unit: str) -> None:
        if unit != self.unit:
            self.unit = unit
            width = self.fontMetrics().horizontalAdvance(unit)
            self.setTextMargins(0, 0, width + _UNIT_GAP if unit else 0, 0)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.unit or self.width() < _UNIT_LEAST:
            return
        painter = QPainter(self)
        painter.setPen(muted(self.palette()))
        painter.drawText(
            QRect(self.rect()).adjusted(0, 0, -_UNIT_GAP, 0),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            self.unit,
        )


class ProblemLabel(ToneLabel):
    def set_problem(self, error: RankdeckError | None) -> None:
        text = "" if error is None else f"✕ {sentences(_capital(_short(error)), error.window_step)}"
        self.say(re.sub(r"\d{7,}", lambda number: f"{int(number[0]):,}", text), "error")


def _short(error: RankdeckError) -> str:
    """The cause without the "Label (name): " that a command line needs and a form does not."""
    head, found, rest = error.cause.partition("): ")
    return rest if found and len(head) < 60 and "(" in head else error.cause


def _capital(text: str) -> str:
    is_file = "." in text.partition(" ")[0].rstrip(".")  # whose name stays as it is
    return text if is_file else text[:1].upper() + text[1:]


def field_grid(owner: QWidget) -> QGridLayout:
    grid = QGridLayout(owner)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(0)
    grid.setVerticalSpacing(4)
    grid.setColumnMinimumWidth(0, MARGIN)
    grid.setColumnMinimumWidth(1, LABEL_WIDTH)
    grid.setColumnStretch(2, 1)
    return grid


Editor: TypeAlias = QLineEdit | ComboBox | QCheckBox | QPlainTextEdit


class FieldRow(QObject):
    """Editor for one `FieldSpec`. It holds text and never refuses any: a problem is shown under it.

    An empty line means the default, which stands in it greyed; a dot marks any other value.
    """

    edited = Signal(str)

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(parent)
        self.spec = spec
        self.default = text_of(spec, spec.default)
        self.applies, self._is_found = True, True
        self._reason = self._placeholder = ""
        self.label = QLabel(spec.label, parent)
        self.label.setContentsMargins(0, 0, 8, 0)
        self.problem = ProblemLabel(parent)
        self.remedies = Remedies(parent)
        self.browse: QToolButton | None = None
        self.editor = self._make_editor(parent)
        self.label.setBuddy(self.editor)
        self.dot = ChangedDot(spec.label, parent)
        self.dot.clicked.connect(self.reset)
        self._help = spec.help + ("" if spec.type in ("bool", "str") else f"\n{_capital(spec.allowed())}.")
        if spec.optional and self.default and spec.type in ("int", "float"):
            self._help += ' "none" switches it off.'
        self._show_help()
        self.editor.setAccessibleName(spec.label + (f" in {spec.unit}" if spec.unit else ""))
        self.editor.setAccessibleDescription(spec.help)
        self.editor.setObjectName(f"field_{spec.name}")
        self.set_placeholder(spec.empty)

    def _make_editor(self, parent: QWidget) -> Editor:
        if self.spec.type == "bool":
            box = QCheckBox(parent)
            box.toggled.connect(self._on_edited)
            return box
        if names := self.spec.names or tuple((choice, choice) for choice in self.spec.choices):
            combo = ComboBox(parent)
            for value, name in names:
                combo.addItem(name, value)
            narrow(combo)
            combo.currentTextChanged.connect(self._on_edited)
            return combo
        if self.spec.type == "variables":
            return self._make_text_box(parent)
        line = UnitEdit(self.spec.unit, parent)
        line.setMinimumWidth(48)
        line.textEdited.connect(self._on_edited)
        if self.spec.type == "path" or self.spec.picks != "name":
            self._add_browse(parent)
        return line

    def _make_text_box(self, parent: QWidget) -> QPlainTextEdit:
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
        self.browse = icon_button(kind, tip, self.choose, f"Browse for {label}")
        self.browse.setParent(parent)

    def place(self, grid: QGridLayout, row: int) -> int:
        """Put the row into columns 0 to 2 of a `field_grid`, and return the next free row."""
        beside = Qt.AlignmentFlag.AlignTop if isinstance(self.editor, QPlainTextEdit) else Qt.AlignmentFlag(0)
        # A long label has more lines: else it would push editors out of sight.
        self.label.setWordWrap(self.label.sizeHint().width() > LABEL_WIDTH)
        self.label.setFixedWidth(LABEL_WIDTH)
        grid.addWidget(self.label, row, 1, beside)
        self.editor.setMinimumHeight(EDITOR_HEIGHT)
        if self.browse is not None:
            grid.addLayout(lay_row(None, self.editor, self.browse, spacing=4, grow=self.editor), row, 2)
        else:
            grid.addWidget(self.editor, row, 2)
        grid.addWidget(self.dot, row, 0, beside)  # after the editor, in the order of Tab
        grid.addWidget(self.problem, row + 1, 1, 1, 2)
        grid.addWidget(self.remedies, row + 2, 1, 1, 2)
        return row + 3

    def text(self) -> str:
        """The entered text; empty: the default counts."""
        if isinstance(self.editor, QCheckBox):
            return "true" if self.editor.isChecked() else "false"
        if isinstance(self.editor, QPlainTextEdit):
            return self.editor.toPlainText()
        return str(self.editor.currentData()) if isinstance(self.editor, ComboBox) else self.editor.text()

    def set_text(self, text: str) -> None:
        """Show a value without a signal."""
        with QSignalBlocker(self.editor):
            if isinstance(self.editor, QCheckBox):
                self.editor.setChecked((text or self.default).lower() in ("true", "1", "yes", "on"))
            elif isinstance(self.editor, ComboBox):
                self.editor.setCurrentIndex(max(0, self.editor.findData(text or self.default)))
            elif isinstance(self.editor, QPlainTextEdit):
                if text != self.text():  # else the cursor would jump
                    self.editor.setPlainText(text)
            elif text != self.text():
                self.editor.setText(text)
        self._show_dot()

    def clear(self) -> None:
        """Return to the default, which a line shows only in grey."""
        self.set_text(self.default if self.spec.type == "str" else "")

    def set_default(self, text: str) -> None:
        """Set the value of an empty field."""
        self.default = text
        self.set_placeholder(text)
        self._show_dot()

    @property
    def is_changed(self) -> bool:
        text = self.text()
        return is_given(self.spec, text, self.default) and not self._means_default(text)

    @property
    def is_set(self) -> bool:
        """Whether a person chose the value; typed text counts even where it is the default today."""
        is_line = isinstance(self.editor, QLineEdit) and self.spec.type != "str"
        return bool(self.text().strip()) if is_line else self.is_changed

    @property
    def is_shown(self) -> bool:
        return self.applies and self._is_found

    def _means_default(self, text: str) -> bool:
        if text == self.default or self.spec.type not in ("int", "float"):
            return text == self.default
        try:
            return self.spec.parse(text) == self.spec.parse(self.default)
        except ConfigError:
            return False

    def reset(self) -> None:
        self.clear()
        self.edited.emit(self.spec.name)
        self.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_visible(self, shown: bool) -> None:
        self.applies = shown
        self._show()

    def search(self, query: str) -> bool:
        """Show the row only if its label or help holds each word of the query."""
        text = f"{self.spec.label} {self.spec.help}".lower()
        self._is_found = all(word in text for word in query.lower().split())
        self._show()
        return self.is_shown

    def _show(self) -> None:
        shown = self.is_shown
        for widget in filter(None, (self.label, self.editor, self.browse)):
            widget.setVisible(shown)
        self.problem.setVisible(shown and bool(self.problem.text()))
        self.remedies.setVisible(shown and bool(self.remedies.buttons))
        self._show_dot()

    def _show_dot(self) -> None:
        self.dot.setToolTip(f"Changed. Click to reset to the default: {self.default or 'none'}")
        self.dot.setVisible(self.is_shown and self.is_changed and self.editor.isEnabled())

    def set_reason(self, reason: str) -> None:
        """Disable the field with a reason; empty enables it. A ticked box can still be cleared."""
        self._reason = reason
        ticked = isinstance(self.editor, QCheckBox) and self.editor.isChecked()
        self.editor.setEnabled(not reason or ticked)
        self.label.setEnabled(not reason)
        self._show_help()
        self.set_placeholder(self._placeholder)
        self._show_dot()

    def set_choice(self, value: str, name: str, reason: str = "") -> None:
        """Rename a value of the list, with a reason while it cannot be chosen."""
        if isinstance(self.editor, ComboBox):
            row = self.editor.findData(value)
            with QSignalBlocker(self.editor):
                self.editor.setItemText(row, name)
            self.editor.setItemData(row, reason or None, Qt.ItemDataRole.ToolTipRole)
            able = None if not reason else 0  # 0 is Qt's own way to disable an item
            self.editor.setItemData(row, able, Qt.ItemDataRole.UserRole - 1)

    def _show_help(self) -> None:
        tip = f"Unavailable: {self._reason}\n{self._help}" if self._reason else self._help
        self.label.setToolTip(tip)
        self.editor.setToolTip(tip)

    def set_placeholder(self, text: str) -> None:
        """Set the grey text of an empty field: its default, or the reason why it has no effect."""
        self._placeholder = text
        if isinstance(self.editor, QLineEdit):
            self.editor.setPlaceholderText(self._reason or text)

    def mark(self, error: RankdeckError | None, steps: Sequence[Step] = ()) -> None:
        """Mark the field as wrong, with the reason and remedies, or as right."""
        self.problem.set_problem(error)
        self.remedies.set_steps(steps if error is not None else ())
        description = self.spec.help if error is None else f"Wrong: {sentences(error.cause, error.window_step)}"
        self.editor.setAccessibleDescription(description)
        self._show()

    def _on_edited(self, *_: object) -> None:
        self._show_dot()
        self.edited.emit(self.spec.name)

    def choose(self) -> None:
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
