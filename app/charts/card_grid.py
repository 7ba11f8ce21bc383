"""Grid of cards in a scroll area; a card is made when it first comes near what is in sight."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent
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
        """The first row of pixels below it."""
        return self.y + self.height


def columns_for(width: int, cards: int) -> int:
    """How many cards stand side by side."""
    return max(1, min(cards, 1 + sum(width >= least for least in WIDTHS)))


def place_cards(cards: int, width: int, height: int) -> list[Place]:
    """Places for cards, row by row; as high together as the view where that is high enough."""
    columns = _fewer_if_tall(columns_for(width, cards), cards, width, height)
    cell, unit = _cell(columns, cards, width, height)
    return [
        Place(number % columns * (cell + GAP), number // columns * (unit + GAP), cell, unit) for number in range(cards)
    ]


def _fewer_if_tall(columns: int, cards: int, width: int, height: int) -> int:
    """As many columns as there is room for, or fewer where cards would be taller than wide, as on a 4K screen."""
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


DROP_EDGE: Final = 2


class CardGrid(QScrollArea):
    """Places cards by their keys. Those out of sight are neither made nor shown, but for a row on both sides: Tab
    reaches it, and scrolls.

    Args:
        make: Gives the card of a key, a new one the first time.

    Attributes:
        is_made: Says of a key whether it has a card. Those that have none are then made one in each turn of the event
            loop, so that the window answers meanwhile; None: all at once.
    """

    def __init__(self, make: Callable[[str], QWidget]) -> None:
        super().__init__()
        self._make = make
        self.is_made: Callable[[str], bool] | None = None
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(self._show_near)
        self._keys: list[str] = []
        self._places: list[Place] = []
        self._shown: dict[str, QWidget] = {}
        self._enlarged: str | None = None
        self.body = _Body()
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
        """The placeholder while there are no charts."""
        if text != self.empty.text():
            self.empty.setText(text)
            self.lay_out()

    def enlarge(self, key: str | None) -> None:
        """One card has all the room; None: each its own."""
        self._enlarged = key
        self.lay_out()

    def key_at(self, place: QPoint) -> str | None:
        """The card at a place on the screen."""
        at = self.body.mapFromGlobal(place)
        found = (k for k, p in self._placed() if p.x <= at.x() < p.x + p.width and p.y <= at.y() < p.bottom)
        return next(found, None)

    def mark_drop(self, key: str | None) -> None:
        """Draws an edge around the card whose place another would take."""
        self.body.drop = next((place for known, place in self._placed() if known == key), None)
        self.body.update()

    @property
    def is_waiting(self) -> bool:
        """Whether cards may still be made, without anything else happening."""
        return self._next_turn.isActive()

    def scroll_to(self, key: str) -> None:
        for known, place in self._placed():
            if known == key:
                self._make(key)  # whatever waits for its turn
                self.verticalScrollBar().setValue(place.y - GAP)
                if key not in self._shown:  # it is where it was scrolled to already
                    self._show_near()
                self._shown[key].setFocus(Qt.FocusReason.OtherFocusReason)

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
        waits = self._next_turn.isActive()
        for key, place in self._placed():
            if place.bottom + place.height > top and place.y - place.height < bottom:
                is_new = self.is_made is not None and not self.is_made(key)
                if is_new and waits:
                    continue
                card = near[key] = self._make(key)
                if is_new:
                    waits = True
                    self._next_turn.start()
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
        """Lets Tab go through the cards as they are placed."""
        chain_placed(self.body, list(self._shown.values()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.lay_out()


class _Body(QWidget):
    """What scrolls; draws where a dragged card would go."""

    def __init__(self) -> None:
        super().__init__()
        self.drop: Place | None = None

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.drop is not None:
            painter = QPainter(self)
            place = (self.drop.x - DROP_EDGE, self.drop.y - DROP_EDGE)
            size = (self.drop.width + 2 * DROP_EDGE, self.drop.height + 2 * DROP_EDGE)
            painter.fillRect(*place, *size, self.palette().color(QPalette.ColorRole.Highlight))
