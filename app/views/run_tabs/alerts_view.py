"""Alerts of a run: warnings, retries, fallbacks and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.state.chart_names import NOT_CHARTED
from app.views.style.icons import icon
from app.views.widgets.build import lay_column
from app.views.widgets.empty_note import WithNote
from core.config.mode import Mode, mode_label
from core.errors import full_stop, sentences
from core.formatting import UNKNOWN, clock, count
from core.machine.devices.names import RankNames, label_by_uuid

NOTHING: Final = "Nothing to report."
SHOWN: Final = 500
DEVICE_COLUMN: Final = 2
KINDS: Final = {"alert": "warning", "retry": "warning", "fallback": "warning", "failed": "error"}


def is_alert(event: Mapping[str, Any]) -> bool:
    """Whether an event of metrics.jsonl belongs into this list."""
    return event.get("event") in KINDS


def alert_text(event: Mapping[str, Any], names: RankNames) -> str:
    """What an event says, in one line."""
    if event.get("event") == "fallback":
        return _fallback_text(event, names)
    if event.get("event") == "retry":
        return f"{event.get('reason', '')} Retrying.".strip()
    error = event.get("error")
    source: Mapping[str, Any] = error if isinstance(error, Mapping) else event
    step = "window_step" if source.get("window_step") else "next_step"
    parts = [str(source[key]) for key in ("title", "message", "reason", "cause", step) if source.get(key)]
    if event.get("kind") == NOT_CHARTED and event.get("names"):
        parts.append("To chart them, open Charts in New run")
    if parts:
        return full_stop(sentences(*parts))
    rest = {key: value for key, value in event.items() if key not in ("ts", "event", "rank", "attempt", "step")}
    return ", ".join(f"{key}: {value}" for key, value in rest.items()) or str(event.get("event"))


def alert_ranks(event: Mapping[str, Any]) -> list[int]:
    """The ranks that an event is about: those the host names, else the one that sent it; empty for all."""
    named = event.get("ranks")
    ranks = named if isinstance(named, list) else [event.get("rank")]
    return [rank for rank in ranks if isinstance(rank, int) and rank >= 0]


def _fallback_text(event: Mapping[str, Any], names: RankNames) -> str:
    if event.get("engine"):
        return f"DeepSpeed could not start, so PyTorch's engine is used instead. {event.get('reason', '')}".strip()
    devices = event.get("devices")
    if event.get("mode") == Mode.INDEPENDENT:
        asked = mode_label(str(event.get("was")), "The selected mode")
        text = f"{asked} could not start, so each device trains its own model, and the best one is kept."
        return f"{text} {event.get('reason', '')}".strip()
    alone = f" ({label_by_uuid(str(devices[0]), names.labels)})" if isinstance(devices, list) and devices else ""
    was = mode_label(str(event.get("was")))
    mode = f"{was[0].upper()}{was[1:]} could not start, so the run" if was else "The run"
    return f"{mode} continued on one device{alone}. {event.get('reason', '')}".strip()


class AlertsView(QWidget):
    """A row an alert, the newest on top."""

    count_changed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = 0
        self._events: Sequence[Mapping[str, Any]] = ()
        self._names = RankNames()
        self.table = QTableWidget(0, 4)
        self.table.setHorizontalHeaderLabels(["Time", "Step", "Device", "What happened"])
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setShowGrid(False)
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
        """Names the devices that alerts are about."""
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
        kind = KINDS[str(event["event"])]
        ranks = alert_ranks(event)
        devices = ", ".join(map(self._names.short, ranks)) or "all"
        at = count(step) if isinstance(step, int) else UNKNOWN
        texts = [clock(event.get("ts")), at, devices, alert_text(event, self._names)]
        for column, text in enumerate(texts):
            item = QTableWidgetItem(text)
            item.setTextAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
            self.table.setItem(row, column, item)
            if column == DEVICE_COLUMN and ranks:
                item.setToolTip(", ".join(map(self._names.with_rank, ranks)))
        first = self.table.item(row, 0)
        if first is not None:
            first.setIcon(icon(kind, kind))
