"""The one question at closing: what becomes of the run that is going."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget


class CloseQuestion(QMessageBox):
    """Keep training (it goes on without the window), stop and commit, or stay."""

    keep_chosen = Signal()
    stop_chosen = Signal()

    def __init__(self, run_name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Close Rankdeck")
        self.setIcon(QMessageBox.Icon.Question)
        self.setText(f"{run_name} is training.")
        self.setInformativeText(
            "It can go on without this window: open Rankdeck again and you see it from its first point. "
            "Or it commits at the next step and ends; you can resume it later."
        )
        self.keep = self.addButton("&Keep training", QMessageBox.ButtonRole.AcceptRole)
        self.stop = self.addButton("&Stop and commit", QMessageBox.ButtonRole.DestructiveRole)
        self.cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(self.keep)
        self.setEscapeButton(self.cancel)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.keep.clicked.connect(self.keep_chosen)
        self.stop.clicked.connect(self.stop_chosen)
