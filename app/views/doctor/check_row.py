"""One check as a row: its sign and name, the result, what it means, what to do, and a button where the window can."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.state.doctor_text import FIXES, LEVELS, spoken_text
from app.views.style.icons import icon
from app.views.widgets.action_buttons import OutlinedButton
from app.views.widgets.build import lay_column, lay_row, muted_label
from core.doctor.finding import Finding

SIGN: Final = 16
NAME_WIDTH: Final = 184


class CheckRow(QWidget):
    """A finding.

    Signals:
        fix_requested: The finding whose button was pressed.
    """

    fix_requested = Signal(object)

    def __init__(self, finding: Finding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.finding = finding
        self._sign = QLabel()
        self._sign.setFixedSize(SIGN, SIGN)
        self._name, self.text, self.next_step = QLabel(), QLabel(), QLabel()
        self._meaning = muted_label()
        for label in (self._name, self.text, self._meaning, self.next_step):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        for label in (self.text, self.next_step):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._name.setFixedWidth(NAME_WIDTH)
        self.fix = OutlinedButton()
        self.fix.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.fix.clicked.connect(lambda: self.fix_requested.emit(self.finding))
        lines = lay_column(None, self.text, self.next_step, self._meaning, spacing=2)
        row = lay_row(self, self._sign, self._name, lines, self.fix, spacing=12, margins=(0, 6, 0, 6), grow=lines)
        for part in (self._sign, self._name, self.fix):
            row.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self.show_finding(finding)

    def show_finding(self, finding: Finding) -> None:
        """Shows a newer result of the same check."""
        self.finding = finding
        self._name.setText(finding.name)
        self.text.setText(f"{finding.text[:1].upper()}{finding.text[1:]}")
        self.next_step.setText(f"To do: {finding.next_step}")
        self.next_step.setVisible(bool(finding.next_step))
        self._meaning.setText(finding.topic.meaning)
        label = FIXES.get(finding.fix, "")
        self.fix.setText(label)
        self.fix.setVisible(bool(label))
        self.fix.setAccessibleName(f"{label} ({finding.name})")
        self.fix.setToolTip(finding.command or finding.next_step)
        self.setAccessibleName(spoken_text(finding))
        self._show_sign()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._show_sign()
        super().changeEvent(event)

    def _show_sign(self) -> None:
        shown = LEVELS[self.finding.level]
        self._sign.setPixmap(icon(shown.sign, shown.tone).pixmap(SIGN, SIGN))
        self._sign.setToolTip(shown.word)
