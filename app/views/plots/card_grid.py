"""Grid of cards in a scroll area; a card is made when it first comes near what is in sight."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

from app.state.chart_cards import DEVICES
from app.views.plots.device_rows import DeviceRows
from app.views.widgets.build import muted_label
from app.views.widgets.tab_order import chain_placed

GAP: Final = 8
LEAST_HEIGHT: Final = 160
# From which width on there are two, three and four columns.
WIDTHS: Final = (640, 1240, 1800)
# Times the height that the devices need: more would stay blank.
MOST_ROOM: Final = 2


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


def place_cards(cards: int, width: int, height: int, devices: Callable[[int], int] | None = None) -> list[Place]:
    """Places for cards, row by row, and for the devices behind them; as high as the view where that is high enough.

    Args:
        cards: How many, without the devices.
        width: Of the view.
        height: Of the view.
        devices: Gives the height that their card needs at a width; None without one.
    """
    columns = _fewer_if_tall(columns_for(width, cards), cards, width, height, devices)
    rows, cell, rest, rest_width = _grid(columns, cards, width)
    unit = _unit(rows, height)
    shares_row = devices is not None and rest > 0 and devices(rest_width) <= unit
    below = 0
    if devices is not None and not shares_row:
        needed = devices(width)
        below = max(needed, LEAST_HEIGHT, min(_unit(rows + 1, height), MOST_ROOM * needed))
        unit = _unit(rows, height - below - GAP)
    places = [
        Place(number % columns * (cell + GAP), number // columns * (unit + GAP), cell, unit) for number in range(cards)
    ]
    if shares_row:
        places.append(Place(width - rest_width, (rows - 1) * (unit + GAP), rest_width, unit))
    elif below:
        places.append(Place(0, rows * (unit + GAP), width, below))
    return places


def _fewer_if_tall(columns: int, cards: int, width: int, height: int, devices: Callable[[int], int] | None) -> int:
    """As many columns as there is room for, or fewer where cards would be taller than wide, as on a 4K screen.

    Where there is that much room, the devices do not stand in a place that is far too large for them either.
    """
    for fewer in range(columns, 1, -1):
        rows, cell, rest, rest_width = _grid(fewer, cards, width)
        unit = _unit(rows, height)
        if unit <= 2 * LEAST_HEIGHT:
            return fewer
        has_place = devices is None or not rest or devices(rest_width) <= unit <= 2 * MOST_ROOM * devices(rest_width)
        if unit <= cell and has_place:
            return fewer
    rows, cell, *_ = _grid(min(2, columns), cards, width)
    return min(2, columns) if _unit(rows, height) <= cell else 1  # devices in too large a place, or one tall card


def _grid(columns: int, cards: int, width: int) -> tuple[int, int, int, int]:
    """Rows, the width of a card, how many places are left in the last row, and how wide these are together."""
    rows = math.ceil(cards / columns)
    cell = (width - GAP * (columns - 1)) // columns
    rest = rows * columns - cards
    return rows, cell, rest, rest * cell + GAP * (rest - 1)


def _unit(rows: int, height: int) -> int:
    """The height of a card, where the rows share the view's."""
    return max(LEAST_HEIGHT, (height - GAP * (rows - 1)) // rows) if rows else height


DROP_EDGE: Final = 2


class CardGrid(QScrollArea):
    """Places cards by their keys. Those out of sight are neither made nor shown, but for a row on both sides: Tab
    reaches it, and scrolls.

    Args:
        make: Gives the card of a key, a new one the first time.
        devices: The last card, while it has something to show; None: there is none.
        parent: Qt owner.

    Attributes:
        is_made: Says of a key whether it has a card. Those that have none are then made one in each turn of the event
            loop, so that the window answers meanwhile; None: all at once.
    """

    def __init__(
        self, make: Callable[[str], QWidget], devices: DeviceRows | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._make = make
        self.is_made: Callable[[str], bool] | None = None
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(self._show_near)
        self._devices = devices
        self._has_devices = False
        self._keys: list[str] = []
        self._places: list[Place] = []
        self._shown: dict[str, QWidget] = {}
        self._enlarged: str | None = None
        self.body = _Body()
        self.empty: QLabel = muted_label()
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setParent(self.body)
        if devices is not None:
            devices.setParent(self.body)
            devices.hide()
            devices.installEventFilter(self)
            devices.enlarge.toggled.connect(lambda on: self.enlarge(DEVICES if on else None))
        self.setWidget(self.body)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().setSingleStep(LEAST_HEIGHT // 4)
        self.verticalScrollBar().valueChanged.connect(self._show_near)
        self.viewport().setAutoFillBackground(False)
        self.body.setAutoFillBackground(False)

    # --- from outside ------------------------------------------------------------------------------------

    def show_cards(self, keys: Sequence[str], has_devices: bool) -> None:
        if (list(keys), has_devices) != (self._keys, self._has_devices):
            self._keys, self._has_devices = list(keys), has_devices
            if self._enlarged == DEVICES and not has_devices and self._devices is not None:
                self._devices.enlarge.setChecked(False)
            elif self._enlarged not in (None, DEVICES, *keys):
                self._enlarged = None
            self.lay_out()

    def show_empty(self, text: str) -> None:
        """What stands in the place of charts while there are none."""
        if text != self.empty.text():
            self.empty.setText(text)
            self.lay_out()

    def enlarge(self, key: str | None) -> None:
        """One card has all the room, `DEVICES` that of the devices; None: each its own."""
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
        cards = len(self._keys) if self._enlarged is None else 1
        has_text = not self._keys and bool(self.empty.text()) and self._enlarged is None
        devices = self._devices if self._has_devices and self._enlarged in (None, DEVICES) else None
        needed = None if devices is None or self._enlarged is not None else devices.needed_height
        self._places = place_cards(max(cards, int(has_text)), view.width(), view.height(), needed)
        self.body.resize(view.width(), max((place.bottom for place in self._places), default=0))
        self.empty.setVisible(has_text)
        if has_text:
            _put(self.empty, self._places[0])
        if self._devices is not None:
            self._devices.setVisible(devices is not None)
        if devices is not None:
            _put(devices, self._places[-1])
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
                _put(card, place)
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
        """Lets Tab go through the cards as they are placed, devices last."""
        devices = [] if self._devices is None else [self._devices]
        chain_placed(self.body, [*self._shown.values(), *devices])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.lay_out()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and watched is self._devices:
            self.lay_out()
        return super().eventFilter(watched, event)


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


def _put(widget: QWidget, place: Place) -> None:
    widget.setGeometry(place.x, place.y, place.width, place.height)
