"""Grid of cards in a scroll area; a card is made when it first comes near what is in sight."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

from app.widgets.build import muted_label
from app.widgets.tab_order import chain_placed

GAP: Final = 8
LEAST_HEIGHT: Final = 160
# From which width on there are two, three and four columns.
WIDTHS: Final = (640, 1240, 1800)


@dataclass(frozen=True, slots=True)
class Place:
    x: int
    y: int
    width: int
    height: int

    @property
    def bottom(self) -> int:
        return self.y + self.height


def columns_for(width: int, cards: int) -> int:
    return max(1, min(cards, 1 + sum(width >= least for least in WIDTHS)))


def place_cards(cards: int, width: int, height: int) -> list[Place]:
    """Place cards row by row; as high together as the view where that is high enough."""
    columns = _fewer_if_tall(columns_for(width, cards), cards, width, height)
    cell, unit = _cell(columns, cards, width, height)
    return [
        Place(number % columns * (cell + GAP), number // columns * (unit + GAP), cell, unit) for number in range(cards)
    ]


def _fewer_if_tall(columns: int, cards: int, width: int, height: int) -> int:
    """Return fewer columns where cards would be taller than wide, as on a 4K screen."""
    for fewer in range(columns, 1, -1):
        cell, unit = _cell(fewer, cards, width, height)
        if unit <= max(cell, 2 * LEAST_HEIGHT):
            return fewer
    return 1


def _cell(columns: int, cards: int, width: int, height: int) -> tuple[int, int]:
    """Width and height of a card, where the rows share the view's height."""
    rows = math.ceil(cards / columns)
    unit = (height - GAP * (rows - 1)) // rows if rows else height
    return (width - GAP * (columns - 1)) // columns, max(LEAST_HEIGHT, unit)


class CardGrid(QScrollArea):
    """Places cards by their keys; `make` gives the card of a key.

    Cards out of sight are neither made nor shown, but for a row on both sides: Tab reaches it, and scrolls.
    """

    def __init__(self, make: Callable[[str], QWidget]) -> None:
        super().__init__()
        self._make = make
        self._keys: list[str] = []
        self._places: list[Place] = []
        self._shown: dict[str, QWidget] = {}
        self._enlarged: str | None = None
        self.body = QWidget()
        self.empty: QLabel = muted_label()
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setParent(self.body)
        self.setWidget(self.body)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().setSingleStep(LEAST_HEIGHT // 4)
        self.verticalScrollBar().valueChanged.connect(self._show_near)
        self.viewport().setAutoFillBackground(False)
        self.body.setAutoFillBackground(False)

    # --- from outside ------------------------------------------------------------------------------------

    def show_cards(self, keys: Sequence[str]) -> None:
        if list(keys) != self._keys:
            self._keys = list(keys)
            if self._enlarged not in keys:
                self._enlarged = None
            self.lay_out()

    def show_empty(self, text: str) -> None:
        if text != self.empty.text():
            self.empty.setText(text)
            self.lay_out()

    def enlarge(self, key: str | None) -> None:
        """Gives one card all the room; None: each its own."""
        self._enlarged = key
        self.lay_out()

    def key_at(self, place: QPoint) -> str | None:
        """The card at a place on the screen."""
        at = self.body.mapFromGlobal(place)
        return next((key for key, card in self._shown.items() if card.geometry().contains(at)), None)

    # --- laying out --------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        view = self.viewport().size()
        has_text = not self._keys and bool(self.empty.text())
        self._places = place_cards(len(self._keys) if self._enlarged is None else 1, view.width(), view.height())
        self.body.resize(view.width(), max((place.bottom for place in self._places), default=view.height()))
        self.empty.setVisible(has_text)
        if has_text:
            self.empty.resize(view)
        self._show_near()

    def _placed(self) -> list[tuple[str, Place]]:
        keys = self._keys if self._enlarged is None else [key for key in self._keys if key == self._enlarged]
        return list(zip(keys, self._places, strict=False))

    def _show_near(self) -> None:
        top = self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        near: dict[str, QWidget] = {}
        for key, place in self._placed():
            if place.bottom + place.height > top and place.y - place.height < bottom:
                card = near[key] = self._make(key)
                card.setGeometry(place.x, place.y, place.width, place.height)
        for key, card in self._shown.items():
            if key not in near:
                card.hide()
        is_other = list(near) != list(self._shown)
        self._shown = near
        for card in near.values():
            card.show()
        if is_other:
            self.chain_tabs()

    def chain_tabs(self) -> None:
        chain_placed(self.body, list(self._shown.values()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.lay_out()
