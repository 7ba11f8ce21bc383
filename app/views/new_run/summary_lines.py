"""Summary below New run: batch arithmetic, steps per epoch, and the command line that starts the same run."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QPushButton, QStyle, QWidget

from app.state.draft import CheckedDraft
from app.views.style.fonts import tabular
from app.views.style.icons import icon
from app.views.style.tones import rule
from app.views.widgets.build import icon_button, lay_column, lay_row, muted_label, named
from core.config.mode import Mode
from core.formatting import count

COPIED_MS: Final = 1500


class SummaryLines(QFrame):
    """Always current: global = micro × ranks × accumulation, steps an epoch, the command line that does the same.

    Signals:
        fix_requested: The line that counts wrong settings was clicked.
    """

    fix_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.arithmetic = QLabel(wordWrap=True)
        self.arithmetic.setFont(tabular(self.arithmetic.font()))
        self.fix = QPushButton("✕ Fix the marked settings to start", flat=True)
        self.fix.setToolTip("Go to the first of them")
        self.fix.clicked.connect(self.fix_requested)
        self.fix.hide()
        self.epoch = muted_label()
        self.command = named(QLineEdit(readOnly=True), "Equivalent command line")
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        tip = "Copy the equivalent command line"
        self.copy = icon_button("copy", tip, self._on_copy_clicked, "Copy the command line")
        self._back = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._back.timeout.connect(lambda: self.copy.setIcon(icon("copy")))
        # As far from the edge as what is above it, where there may be a scroll bar.
        right = 4 + self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        row = lay_row(None, self.command, self.copy, spacing=4, grow=self.command)
        parts = (Line(), self.arithmetic, self.fix, self.epoch, row)
        column = lay_column(self, *parts, spacing=4, margins=(12, 8, right, 8))
        column.setAlignment(self.fix, Qt.AlignmentFlag.AlignLeft)

    def show_checked(self, checked: CheckedDraft, steps_per_epoch: int | None, ranks: int = 1) -> None:
        """Shows a draft's arithmetic; while something is wrong, how many things are.

        Args:
            checked: The draft.
            steps_per_epoch: None while that is not known.
            ranks: Devices that are ticked.
        """
        batch, text, epoch = checked.batch, "", ""
        tip = "Samples per optimizer step = micro-batch × devices × accumulation"
        if batch is not None:
            apart = " per device" if checked.mode == Mode.INDEPENDENT else ""
            factors = f"{count(batch.micro)} × {batch.ranks} × {count(batch.accumulation)}"
            text = f"Global batch {count(batch.global_)} = {factors}{apart}"
            if steps_per_epoch:
                epoch = f"≈ {count(steps_per_epoch)} {'step' if steps_per_epoch == 1 else 'steps'} per epoch"
        elif checked.config is not None:
            text = "1 process" if ranks == 1 else f"{count(ranks)} processes, one per device"
            tip = "The program sets its own batch size"
        else:
            wrong = len(checked.problems)
            self.fix.setText(f"✕ Fix {wrong} {'setting' if wrong == 1 else 'settings'} to start")
        self.arithmetic.setText(text)
        self.arithmetic.setToolTip(tip)
        self.epoch.setText(epoch)
        self.arithmetic.setVisible(bool(text))
        self.fix.setVisible(not text)
        if self.command.text() != checked.command:
            self.command.setText(checked.command)
            self.command.setCursorPosition(0)
        self.command.setToolTip(checked.command)
        self.copy.setEnabled(bool(checked.command))
        self.copy.setToolTip(
            "Copy the equivalent command line" if checked.command else "Fix the marked settings to get a command"
        )

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copy.setIcon(icon("state-finished", "success"))
        self._back.start()


class Line(QFrame):
    """A thin rule between parts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), rule(self.palette()))
