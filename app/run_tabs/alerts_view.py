"""Alerts of a run: warnings, retries, fallbacks and failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QIcon, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.run_tabs.event_text import ALERT_LEVELS, alert_lines
from app.style.icons import icon
from app.widgets.build import lay_column
from app.widgets.empty_note import WithNote
from core.formatting import UNKNOWN, clock, count
from core.machine.devices.names import RankNames

PADDING: Final = 6
LINE_GAP: Final = 2
ICON: Final = 16
_WRAPPED: Final = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_TALL: Final = 1 << 16
Index = QModelIndex | QPersistentModelIndex


class AlertDelegate(QStyledItemDelegate):
    """Each line of a cell's text is a paragraph; where there are several, the first is the title."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        text, sign, area = _text(index), QIcon(cell.icon), _inner(cell)
        cell.text = ""
        cell.features &= ~QStyleOptionViewItem.ViewItemFeature.HasDecoration
        style = QApplication.style() if cell.widget is None else cell.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, cell, painter, cell.widget)
        painter.save()
        painter.setPen(cell.palette.text().color())
        if not sign.isNull():
            line = cell.fontMetrics.height()
            sign.paint(painter, QRect(area.left(), area.top() + (line - ICON) // 2, ICON, ICON))
            area.setLeft(area.left() + ICON + PADDING)
        for paragraph, font, height in _paragraphs(text, cell.font, area.width()):
            painter.setFont(font)
            painter.drawText(QRect(area.left(), area.top(), area.width(), height), _WRAPPED, paragraph)
            area.setTop(area.top() + height + LINE_GAP)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        text = _text(index)
        needed = cell.fontMetrics.horizontalAdvance(text) + (0 if cell.icon.isNull() else ICON + PADDING)
        heights = [height for _, _, height in _paragraphs(text, cell.font, max(1, _inner(cell).width()))]
        return QSize(needed + 2 * PADDING + 2, sum(heights) + (len(heights) - 1) * LINE_GAP + 2 * PADDING)


def _text(index: Index) -> str:
    return str(index.data(Qt.ItemDataRole.DisplayRole) or "")


def _inner(cell: QStyleOptionViewItem) -> QRect:
    area: QRect = cell.rect
    return area.adjusted(PADDING, PADDING, -PADDING, -PADDING)


def _paragraphs(text: str, font: QFont, width: int) -> Iterator[tuple[str, QFont, int]]:
    paragraphs = text.split("\n")
    for number, paragraph in enumerate(paragraphs):
        own = QFont(font)
        own.setBold(number == 0 and len(paragraphs) > 1)
        box = QFontMetrics(own).boundingRect(QRect(0, 0, width, _TALL), _WRAPPED, paragraph)
        yield paragraph, own, box.height()


NOTHING: Final = "Nothing to report."
SHOWN: Final = 500
DEVICE_COLUMN: Final = 2


def is_alert(event: Mapping[str, Any]) -> bool:
    """Whether an event of metrics.jsonl belongs into this list."""
    return event.get("event") in ALERT_LEVELS


def alert_ranks(event: Mapping[str, Any]) -> list[int]:
    """The ranks that an event is about: those the host names, else the one that sent it; empty for all."""
    named = event.get("ranks")
    ranks = named if isinstance(named, list) else [event.get("rank")]
    return [rank for rank in ranks if isinstance(rank, int) and rank >= 0]


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
        self.table.setItemDelegate(AlertDelegate(self.table))
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
        """Shows the alerts among a run's events (oldest first)."""
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
