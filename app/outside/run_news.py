"""Run news: the message outside the window about a run that ended, or that needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import full_stop, sentences

if TYPE_CHECKING:
    from core.run_folder.record import RunRecord

# States that are reported: a run that was stopped was stopped by a person.
REPORTED: Final = ("finished", "failed", "interrupted")


@dataclass(frozen=True, slots=True)
class RunNews:
    """One notification, which opens `run_dir`; `kind` is "success", "warning" or "error"."""

    run_dir: Path
    kind: str
    title: str
    text: str = ""


class LiveRuns:
    """Remembers which runs were live, so that only runs that end while the window is open are reported."""

    def __init__(self) -> None:
        self._live: set[Path] = set()
        self._in_trouble: set[Path] = set()

    def changed(self, records: Sequence[RunRecord]) -> list[RunRecord]:
        """The runs that ended since the last call, and those that cannot be saved any more."""
        reported = []
        live, in_trouble = set(), set()
        for record in records:
            state = record.entry.state
            if state is None:
                continue
            if state.is_live:
                live.add(record.path)
                if state.trouble:
                    in_trouble.add(record.path)
            ended = record.path in self._live and state.state in REPORTED
            if ended or (record.path in in_trouble - self._in_trouble and record.path in self._live):
                reported.append(record)
        self._live, self._in_trouble = live, in_trouble
        return reported


def run_news(record: RunRecord) -> RunNews | None:
    """The message about a run; None if there is none."""
    from app.run.run_outcome import cause_and_step  # here: NumPy comes with it

    state, name = record.entry.state, record.label
    if state is None:
        return None
    if state.state == "finished":
        return RunNews(record.path, "success", f"{name} finished.")
    if state.state == "failed":
        error = state.error or {}
        return RunNews(
            record.path, "error", f"{name} failed.", sentences(full_stop(error.get("title", "")), cause_and_step(error))
        )
    if state.state == "interrupted":
        return RunNews(record.path, "warning", f"{name} was interrupted.", cause_and_step(state.error or {}))
    if state.trouble and state.is_live:
        title = full_stop(state.trouble.get("title", "The run cannot be saved"))
        return RunNews(record.path, "warning", f"{name} needs you.", sentences(title, cause_and_step(state.trouble)))
    return None
