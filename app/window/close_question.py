"""Close question: whether runs that are training continue or stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.style.icons import icon

ICON_PX: Final = 32


class CloseQuestion(QMessageBox):
    """Keep training (runs continue without the window), stop and save, or stay.

    Args:
        runs: Names of the runs that are going; one at least.
        parent: The window that is to be closed.
    """

    keep_chosen = Signal()
    stop_chosen = Signal()

    def __init__(self, runs: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Close Rankdeck")
        self.setIconPixmap(icon("help", "accent").pixmap(ICON_PX, ICON_PX))
        several = len(runs) > 1
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(f"{len(runs)} runs are training: {', '.join(runs)}." if several else f"{runs[0]} is training.")
        it, s = ("they", "") if several else ("it", "s")
        self.setInformativeText(
            f"Keep training: {it} continue{'' if several else 's'} without this window. Open Rankdeck again to see "
            f"{'them' if several else it} from the first step.\n\nStop and save: {it} save{s} a checkpoint at the next "
            f"step and stop{s}. You can resume later. Scripts are asked to stop and decide what they save."
        )
        self.keep = self.addButton("&Keep training", QMessageBox.ButtonRole.AcceptRole)
        self.stop = self.addButton("&Stop and save", QMessageBox.ButtonRole.DestructiveRole)
        self.cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(self.keep)
        self.setEscapeButton(self.cancel)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.keep.clicked.connect(self.keep_chosen)
        self.stop.clicked.connect(self.stop_chosen)
