"""The run's name in its header, which can be changed where it stands."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QLineEdit, QSizePolicy, QWidget

from app.actions.actions import Actions
from app.widgets.build import TITLE_SCALE, lay_row, named
from app.widgets.buttons import ActionButton
from app.widgets.elided_label import ElidedLabel
from core.run_folder.notes import MAX_NAME

LEAST_WIDTH: Final = 96
EDIT_WIDTH: Final = 320


class NameLabel(ElidedLabel):
    """A heading that is as wide as its text, or as the room.

    Signals:
        double_clicked: It was double-clicked.
    """

    double_clicked = Signal()

    def __init__(self) -> None:
        super().__init__(mode=Qt.TextElideMode.ElideMiddle)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        font = self.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * TITLE_SCALE)
        self.setFont(font)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.full_text) + 4, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(LEAST_WIDTH, self.sizeHint().width()), super().minimumSizeHint().height())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()
        self.double_clicked.emit()


class NameLine(QLineEdit):
    """Where a name is typed; Esc leaves it as it was.

    Signals:
        left: Nothing is to be changed.
    """

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
            return
        super().keyPressEvent(event)


class RunTitle(QWidget):
    """The name with a pencil; a double click, the pencil or F2 turn it into a line to type in.

    Signals:
        renamed: The new name; empty: the run gets its own back.
    """

    renamed = Signal(str)

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self.label = NameLabel()
        self.pencil = ActionButton(actions.rename, bare=True)
        self.line = named(NameLine(), "Name of the run")
        self.line.setMaxLength(MAX_NAME)
        self.line.setMaximumWidth(EDIT_WIDTH)
        self.line.setMinimumWidth(LEAST_WIDTH)
        self.line.hide()
        lay_row(self, self.label, self.line, self.pencil, spacing=4)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        actions.rename.triggered.connect(self.edit)
        self.label.double_clicked.connect(self.edit)
        self.line.left.connect(self._stop)
        self.line.editingFinished.connect(self._on_finished)

    @property
    def is_edited(self) -> bool:
        return not self.line.isHidden()

    def show_name(self, name: str) -> None:
        """Shows a name; what is being typed stays."""
        self.label.set_full_text(name)
        self.label.setAccessibleName(f"Run {name}")

    def edit(self) -> None:
        """Turns the name into a line to type in."""
        if not self.label.full_text:
            return
        self.line.setText(self.label.full_text)
        self.label.hide()
        self.pencil.hide()
        self.line.show()
        self.line.setFocus(Qt.FocusReason.OtherFocusReason)
        self.line.selectAll()

    def _on_finished(self) -> None:
        if self.is_edited:
            name = self.line.text().strip()
            self._stop()
            if name != self.label.full_text:
                self.renamed.emit(name)

    def _stop(self) -> None:
        self.line.hide()
        self.label.show()
        self.pencil.show()
