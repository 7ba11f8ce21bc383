"""Counts what Qt is made to do: paint events, layouts, tooltips."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


class EventCounts(QObject):
    """Counts the events of a widget and of everything in it, from now on, by type.

    Args:
        root: Watched with all its children.
        kinds: Types to count.
    """

    def __init__(self, root: QWidget, *kinds: QEvent.Type) -> None:
        super().__init__(root)
        self._kinds = kinds
        self.counts: Counter[QEvent.Type] = Counter()
        for widget in (root, *root.findChildren(QWidget)):
            widget.installEventFilter(self)

    @property
    def total(self) -> int:
        return self.counts.total()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in self._kinds:
            self.counts[event.type()] += 1
        return False
