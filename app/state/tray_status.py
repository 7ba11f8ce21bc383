"""Tray status: what the icon beside the clock says of the runs that are live, and which of them it can stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.state.task_progress import TaskState, look_of
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

MOST_RUNS: Final = 6
"""More are counted, not listed."""
LONGEST_TIP: Final = 120
"""Windows shows no more than 127 characters of it."""
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class TrayRun:
    """A live run in the menu.

    Attributes:
        run_dir: Its folder.
        name: What it is called, shortened.
        text: Name, state and progress: "base-gpt: training, 45 %".
        can_stop: It has not been asked to stop.
    """

    run_dir: Path
    name: str
    text: str
    can_stop: bool


@dataclass(frozen=True, slots=True)
class TrayStatus:
    """The icon.

    Attributes:
        look: The most urgent state of all live runs; NONE without one.
        tip: What is said when the mouse is over it.
        runs: The live runs, newest first.
        more: The number of other live runs.
    """

    look: TaskState = TaskState.NONE
    tip: str = "Rankdeck"
    runs: tuple[TrayRun, ...] = ()
    more: int = 0


IDLE: Final = TrayStatus()
_URGENCY: Final = (TaskState.ERROR, TaskState.NORMAL, TaskState.BUSY, TaskState.PAUSED)


def tray_status(entries: Sequence[RunEntry], name_of: Callable[[Path], str]) -> TrayStatus:
    """The status of all live runs.

    Args:
        entries: Every run.
        name_of: Names the run in a folder.
    """
    live = [(entry, entry.state) for entry in entries if entry.state is not None and entry.state.is_live]
    if not live:
        return IDLE
    live.sort(key=lambda run: run[1].created, reverse=True)
    looks = {look_of(state) for _, state in live}
    runs = tuple(_run(entry.path, state, name_of(entry.path)) for entry, state in live[:MOST_RUNS])
    tip = runs[0].text if len(live) == 1 else f"{len(live)} runs: {runs[0].text}"
    more = len(live) - len(runs)
    return TrayStatus(next(look for look in _URGENCY if look in looks), _short(tip, LONGEST_TIP), runs, more)


def _run(run_dir: Path, state: RunState, name: str) -> TrayRun:
    short = _short(name, _LONGEST_NAME)
    share = f", {min(100, 100 * state.step // state.total_steps)} %" if state.total_steps and state.step else ""
    doing = "needs you" if state.trouble else state.state
    return TrayRun(run_dir, short, f"{short}: {doing}{share}", state.state != "stopping")


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
