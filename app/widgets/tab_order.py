"""Tab order as widgets are laid out: Qt's own is that of their making, which a rebuilt form does not keep."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QWidget


def chain_tabs(root: QWidget) -> None:
    """Set the tab order of a widget's parts by their layouts, hidden ones included."""
    for first, second in itertools.pairwise(_focusable(root)):
        QWidget.setTabOrder(first, second)


def chain_placed(ground: QWidget, parts: Iterable[QWidget]) -> None:
    """Set the tab order of parts without a layout, after the widget before `ground`."""
    before = ground.previousInFocusChain() or ground
    while before is not ground and (ground.isAncestorOf(before) or not before.focusPolicy() & Qt.FocusPolicy.TabFocus):
        before = before.previousInFocusChain() or ground
    for part in parts:
        for widget in _focusable(part):
            QWidget.setTabOrder(before, widget)
            before = widget


def _focusable(widget: QWidget) -> Iterator[QWidget]:
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    if isinstance(widget, QScrollArea):
        if (content := widget.widget()) is not None:
            yield from _focusable(content)
    elif (layout := widget.layout()) is not None:
        yield from _laid_out(layout)


def _laid_out(layout: QLayout) -> Iterator[QWidget]:
    for place in range(layout.count()):
        item = layout.itemAt(place)
        if item is None:
            continue
        if (widget := item.widget()) is not None:
            yield from _focusable(widget)
        elif (inner := item.layout()) is not None:
            yield from _laid_out(inner)
