"""A plot's title from which another quantity can be chosen, of those that the shown run has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QInputDialog, QMenu, QToolButton, QWidget

MOST_LISTED: Final = 40


class TitleBox(QToolButton):
    """The title, with a list of what else can be plotted here. No wider than its text: the values stand next to it.

    Signals:
        quantity_chosen: The title that is plotted from now on.
    """

    quantity_chosen = Signal(str)

    def __init__(self, first: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        font = self.font()
        font.setBold(True)
        self.setFont(font)
        self.setAutoRaise(True)
        self.setToolTip("Choose what this plot shows")
        self.setAccessibleDescription("Choose what this plot shows")
        self.titles: list[str] = [first]
        self.title = first
        self.clicked.connect(self._offer)
        self._show()

    def show_titles(self, titles: Sequence[str]) -> None:
        """What there is to choose; what is chosen stays chosen while it is there."""
        if self.titles == list(titles):
            return
        self.titles = list(titles)
        if self.title not in self.titles:
            self.choose(self.titles[0])
        self._show()

    def choose(self, title: str) -> None:
        """Plots this."""
        self.title = title
        self._show()
        self.quantity_chosen.emit(title)

    def _show(self) -> None:
        self.setText(f"{self.title} ▾")
        self.setAccessibleName(self.title)

    def _offer(self) -> None:
        """A menu; with more names than a screen has lines, a list to search in."""
        if len(self.titles) > MOST_LISTED:
            choice = QInputDialog(self)
            choice.setWindowTitle("Choose a chart")
            choice.setLabelText("What this plot shows:")
            choice.setComboBoxItems(self.titles)
            choice.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems)
            choice.setTextValue(self.title)
            choice.textValueSelected.connect(self.choose)
            choice.finished.connect(choice.deleteLater)
            choice.open()
            return
        menu = QMenu(self)
        for title in self.titles:
            action = menu.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(title == self.title)
            action.triggered.connect(lambda _on, title=title: self.choose(title))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mapToGlobal(QPoint(0, self.height())))
