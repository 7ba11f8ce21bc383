"""Alerts of a run: warnings, retries, fallbacks and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.style.icons import icon
from app.widgets.build import lay_column
from app.widgets.empty_note import WithNote
from core.formatting import UNKNOWN, clock, count
from core.machine.devices.names import RankNames
from core.metrics.event_text import ALERT_LEVELS, alert_lines

NOTHING: Final = "Nothing to report."
PADDING: Final = 6
SHOWN: Final = 500
DEVICE_COLUMN: Final = 2


def is_alert(event: Mapping[str, Any]) -> bool:
    return event.get("event") in ALERT_LEVELS


def alert_ranks(event: Mapping[str, Any]) -> list[int]:
    """Return the ranks that the host names, else the one that sent the event; empty for all."""
    named = event.get("ranks")
    ranks = named if isinstance(named, list) else [event.get("rank")]
    return [rank for rank in ranks if isinstance(rank, int) and rank >= 0]


class RoomyDelegate(QStyledItemDelegate):
    """Leaves room between alerts, whose texts have several lines."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return super().sizeHint(option, index) + QSize(0, 2 * PADDING)


class AlertsView(QWidget):
    """A row an alert, the newest on top."""

    count_changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._shown = 0
        self._events: Sequence[Mapping[str, Any]] = ()
        self._names = RankNames()
        self.table = QTableWidget(0, 4)
        self.table.setHorizontalHeaderLabels(["Time", "Step", "Device", "What happened"])
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setShowGrid(False)
        self.table.setItemDelegate(RoomyDelegate(self.table))
        self.table.setTabKeyNavigation(False)
        self.table.setAccessibleName("Alerts")
        self.table.verticalHeader().hide()
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(3, QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.page = WithNote(self.table, NOTHING)
        lay_column(self, self.page)

    def show_names(self, names: RankNames) -> None:
        self._names, self._shown = names, -1
        self.show_events(self._events)

    def show_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events = events
        alerts = [event for event in events if is_alert(event)]
        if len(alerts) == self._shown:
            return
        self._shown = len(alerts)
        newest = alerts[-SHOWN:][::-1]
        self.table.setRowCount(len(newest))
        for row, event in enumerate(newest):
            self._fill(row, event)
        self.page.set_empty(not newest)
        self.count_changed.emit(len(alerts))

    def _fill(self, row: int, event: Mapping[str, Any]) -> None:
        step = event.get("step")
        kind = ALERT_LEVELS[str(event["event"])]
        ranks = alert_ranks(event)
        devices = ", ".join(map(self._names.short, ranks)) or "all"
        at = count(step) if isinstance(step, int) else UNKNOWN
        texts = [clock(event.get("ts")), at, devices, "\n".join(alert_lines(event, self._names))]
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text)
            self.table.setItem(row, column, item)
            if column == DEVICE_COLUMN and ranks:
                item.setToolTip(", ".join(map(self._names.with_rank, ranks)))
        first = self.table.item(row, 0)
        if first is not None:
            first.setIcon(icon(kind, kind))
