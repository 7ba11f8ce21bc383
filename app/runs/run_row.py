"""Row of the list of runs, and its texts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.formatting import UNKNOWN, byte_size, duration, number, percent
from core.metrics.curve import MetricCurve
from core.recipes.main_metric import LOSS, MainMetric
from core.run_folder.naming import SEPARATOR, begun_text, devices_text
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

NO_CURVE: Final = MetricCurve()
# Letters of a note in the tooltip.
MAX_TIP: Final = 400
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the list.

    Attributes:
        metric: By which runs of its recipe are judged.
        shown: Its last value as the window shows it beside the list; None: as the run's state says it.
    """

    record: RunRecord
    metric: MainMetric = LOSS
    shown: float | None = None

    def last(self, curve: MetricCurve) -> float | None:
        state = self.entry.state
        return self.shown if self.shown is not None else self.metric.last(None if state is None else state.loss, curve)

    @property
    def entry(self) -> RunEntry:
        return self.record.entry

    @property
    def path(self) -> Path:
        return self.record.path


def is_live(entry: RunEntry) -> bool:
    return entry.state is not None and entry.state.is_live


def progress(entry: RunEntry) -> float | None:
    if entry.state is None or not entry.state.total_steps:
        return None
    return min(1.0, entry.state.step / entry.state.total_steps)


def reason(entry: RunEntry) -> str:
    """Reason of a failed, interrupted or unreadable run; empty for all others."""
    if entry.state is None:
        return entry.problem or "It cannot be read."
    if entry.state.state in ("failed", "interrupted") and entry.state.error:
        return entry.state.error.get("cause", "")
    return ""


def lasted_s(state: RunState, now: float | None = None) -> float | None:
    """Seconds from its start to its end, or to now; of a resumed run the seconds in which it trained."""
    if not state.created or state.attempt > 1:
        return state.trained_s or None
    end = state.now(time.time() if now is None else now) if state.is_live else state.updated
    return max(0.0, end - state.created) if end else None


def title_text(record: RunRecord) -> str:
    """First line: the user's name; else its own, without the devices and the date of the second line."""
    state = record.entry.state
    if record.notes.name or state is None or not state.name or state.name == state.run_id:
        return record.label
    return state.name


def value_text(row: RunRow, curve: MetricCurve = NO_CURVE) -> str:
    return UNKNOWN if row.entry.state is None else number(row.last(curve))


def detail_text(record: RunRecord, now: float | None = None) -> str:
    """Second line: the reason of a failure; else devices, progress, duration and date."""
    state = record.entry.state
    why = " ".join(reason(record.entry).split())
    if state is None or why:
        return why
    lasted = lasted_s(state, now)
    parts = [devices_text(state), record.machine, _stage(record.entry), "" if lasted is None else _short(lasted)]
    if not state.is_live:
        parts.append(day_text(state.created, now))
    return SEPARATOR.join(part for part in parts if part)


def day_text(created: float, now: float | None = None) -> str:
    """Date of a run's start: "12:17" today, "yesterday", "24 Nov", "24 Nov 2025"."""
    if not created:
        return ""
    begun, today = time.localtime(created), time.localtime(now)
    if begun[:3] == today[:3]:
        return time.strftime("%H:%M", begun)
    noon = time.mktime((*today[:3], 12, 0, 0, 0, 0, -1))
    if begun[:3] == time.localtime(noon - 86_400)[:3]:
        return "yesterday"
    day = f"{begun.tm_mday} {_MONTHS[begun.tm_mon - 1]}"
    return day if begun.tm_year == today.tm_year else f"{day} {begun.tm_year}"


def description(row: RunRow, curve: MetricCurve = NO_CURVE, size_bytes: int = 0) -> str:
    """A run for its tooltip and for screen readers, a line for each fact; its folder and its size on the disk last."""
    record, notes, state = row.record, row.record.notes, row.entry.state
    lines = [record.label, _headline(record)]
    if state is not None:
        values = row.metric.text(row.last(curve), curve)
        lines.append(values[:1].upper() + values[1:])
        lines.append(f"Started {begun_text(state.created)}" if state.created else "")
    lines += [_where(record), "Pinned" if notes.pinned else ""]
    lines += [f"Tags: {', '.join(notes.tags)}" if notes.tags else "", _shortened(notes.note)]
    lines.append(record.path.name + (f"{SEPARATOR}{byte_size(size_bytes)}" if size_bytes else ""))
    return "\n".join(line for line in lines if line)


def _headline(record: RunRecord) -> str:
    entry = record.entry
    done, why = progress(entry), reason(entry)
    parts = [entry.word.capitalize() + (f" at {percent(done)}" if done is not None and done < 1 else "")]
    if entry.state is not None:
        lasted = lasted_s(entry.state)
        parts += [devices_text(entry.state), "" if lasted is None else duration(lasted)]
    return SEPARATOR.join(part for part in parts if part) + (f": {why}" if why else "")


def _where(record: RunRecord) -> str:
    if record.remote is None:
        return ""
    return f"On {record.machine}" if record.machine else f"Was on {record.remote.machine} before"


def _shortened(note: str) -> str:
    return note if len(note) <= MAX_TIP else f"{note[:MAX_TIP].rstrip()}…"


def _stage(entry: RunEntry) -> str:
    if entry.state is None or entry.word == "finished":
        return ""
    done = progress(entry)
    if entry.word == "training":
        return f"step {entry.state.step:,}" if done is None else percent(done)
    return f"{entry.word} at {percent(done)}" if entry.word == "stopped" and done is not None else entry.word


def _short(seconds: float) -> str:
    """A time span in its largest unit below an hour: it need not run in a list."""
    whole = round(seconds)
    return f"{whole // 60} m" if 60 <= whole < 3600 else duration(seconds)
