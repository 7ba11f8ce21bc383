"""Button with the list of cards: hides them, shows them again, finds one of many."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QInputDialog, QMenu, QPushButton, QWidget

from app.views.plots.chart_cards import ChartCards

MOST_LISTED: Final = 40


class CardsButton(QPushButton):
    """Offers all cards of the shown run; with more than a screen has lines, the hidden ones and a search."""

    def __init__(self, cards: ChartCards, parent: QWidget | None = None) -> None:
        super().__init__("&Cards", parent)
        self._cards = cards
        self.setAccessibleName("Cards shown")
        self.setToolTip("Choose which charts are shown")
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self.fill)
        self.setMenu(self._menu)

    def fill(self) -> QMenu:
        """Makes the menu for the cards that there are now."""
        cards, hidden = self._cards, self._cards.arrangement.hidden
        keys = cards.all_keys()
        self._menu.clear()
        if len(keys) > MOST_LISTED:
            self._menu.addAction("&Find a card…").triggered.connect(self._find)
            self._menu.addSeparator()
            keys = [key for key in keys if key in hidden][:MOST_LISTED]
        for key in keys:
            action = self._menu.addAction(cards.title(key).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(key not in hidden)
            action.toggled.connect(lambda shown, key=key: cards.set_hidden(key, not shown))
        if keys:
            self._menu.addSeparator()
        reset = self._menu.addAction("&Show all in the usual order")
        reset.setEnabled(cards.arrangement.values() != {"order": [], "hidden": []})
        reset.triggered.connect(cards.forget_arrangement)
        return self._menu

    def _find(self) -> None:
        by_title = {self._cards.title(key): key for key in self._cards.all_keys() if key in self._cards.cards}
        choice = QInputDialog(self)
        choice.setWindowTitle("Find a card")
        choice.setLabelText("Show the card of this metric:")
        choice.setComboBoxItems(list(by_title))
        choice.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems)
        choice.textValueSelected.connect(lambda title: self._cards.scroll_to(by_title[title]))
        choice.finished.connect(choice.deleteLater)
        choice.open()
