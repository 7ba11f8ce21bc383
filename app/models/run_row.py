"""Row of the list of runs, and its texts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from core.formatting import UNKNOWN, duration, number, percent
from core.run_folder.naming import SEPARATOR, begun_text, devices_text
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, as the list shows it.

    Attributes:
        record: Its state, notes and settings.
        curve: Its loss from the first step to the last, at a few points; empty while none is known.
        size_bytes: What its folder takes on the disk; None until that was counted.
    """

    record: RunRecord
    curve: tuple[float, ...] = field(default=())
    size_bytes: int | None = None

    @property
    def entry(self) -> RunEntry:
        """Its folder and its state."""
        return self.record.entry

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.record.path


def is_live(entry: RunEntry) -> bool:
    """Whether a host is at work on it just now."""
    return entry.state is not None and entry.state.is_live


def progress(entry: RunEntry) -> float | None:
    """How much of the steps is done, 0..1."""
    if entry.state is None or not entry.state.total_steps:
        return None
    return min(1.0, entry.state.step / entry.state.total_steps)


def reason(entry: RunEntry) -> str:
    """Why a run failed, was interrupted or cannot be read; empty for all others."""
    if entry.state is None:
        return entry.problem or "It cannot be read."
    if entry.state.state in ("failed", "interrupted") and entry.state.error:
        return entry.state.error.get("cause", "")
    return ""


def lasted_s(state: RunState, now: float | None = None) -> float | None:
    """Seconds from its start to its end, or to now. Unknown for a resumed run: the pauses are not noted."""
    if not state.created or state.attempt > 1:
        return None
    end = (time.time() if now is None else now) if state.is_live else state.updated
    return max(0.0, end - state.created) if end else None


def value_text(entry: RunEntry) -> str:
    """The last loss."""
    return number(entry.state.loss) if entry.state is not None else UNKNOWN


def detail_text(record: RunRecord, now: float | None = None) -> str:
    """The second line: why it failed; else how far it is, on what, and how long it took."""
    state = record.entry.state
    why = " ".join(reason(record.entry).split())
    if state is None or why:
        return why
    lasted = lasted_s(state, now)
    parts = [_stage(record.entry), devices_text(state), "" if lasted is None else _short(lasted)]
    if record.notes.name and not state.is_live:  # other names end with it
        parts.append(begun_text(state.created, now))
    return SEPARATOR.join(part for part in parts if part)


def sentence(record: RunRecord) -> str:
    """The row for screen readers and tooltips: "base, stopped, 64 %, loss 1.83"."""
    entry = record.entry
    done = progress(entry)
    parts = [record.label, entry.word]
    if done is not None:
        parts.append(percent(done))
    if entry.state is not None and entry.state.loss is not None:
        parts.append(f"loss {number(entry.state.loss)}")
    if record.notes.pinned:
        parts.append("pinned")
    why = reason(entry)
    return ", ".join(parts) + (f". {why}" if why else "")


def tooltip(record: RunRecord) -> str:
    """The sentence, tags, note and folder of a run, a line each."""
    notes = record.notes
    tags = f"Tags: {', '.join(notes.tags)}" if notes.tags else ""
    return "\n".join(part for part in (sentence(record), tags, notes.note, record.path.name) if part)


def _stage(entry: RunEntry) -> str:
    """How far a run is that has not reached its end."""
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
