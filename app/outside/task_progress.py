"""Progress outside the window: the bar on its button in the task bar, and the icon beside the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


class TaskState(Enum):
    NONE = "none"
    BUSY = "busy"
    NORMAL = "normal"
    PAUSED = "paused"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The bar on the window's button.

    Attributes:
        state: How it looks.
        share: How far the run is, 0..1, in whole percents, so that the system is told of a change that can be seen.
    """

    state: TaskState = TaskState.NONE
    share: float = 0.0


NO_PROGRESS: Final = TaskProgress()
# While a run that failed has not been looked at.
FAILED: Final = TaskProgress(TaskState.ERROR, 1.0)
# Windows shows no more than 127 characters.
LONGEST_TIP: Final = 120
_URGENCY: Final = (TaskState.ERROR, TaskState.NORMAL, TaskState.BUSY, TaskState.PAUSED)


@dataclass(frozen=True, slots=True)
class TrayStatus:
    """The icon beside the clock.

    Attributes:
        look: The most urgent state of all live runs; NONE without one.
        tip: What is said when the mouse is over it.
    """

    look: TaskState = TaskState.NONE
    tip: str = "Rankdeck"


IDLE: Final = TrayStatus()


def task_progress(entries: Sequence[RunEntry], shown: Path | None) -> TaskProgress:
    """The progress of the shown run while that is live, else of the live run that began last.

    Args:
        entries: Every run.
        shown: The run that the window shows.
    """
    live = [(entry.path == shown, entry.state) for entry in entries if entry.state is not None and entry.state.is_live]
    if not live:
        return NO_PROGRESS
    _, state = max(live, key=lambda run: (run[0], run[1].created))
    return TaskProgress(look_of(state), _share(state))


def _share(state: RunState) -> float:
    return round(min(1.0, state.step / state.total_steps), 2) if state.total_steps else 0.0


def look_of(state: RunState) -> TaskState:
    """How a live run looks: red where it needs a person, yellow while it stops, moving while its end is not known."""
    if state.trouble:
        return TaskState.ERROR
    if state.state == "stopping":
        return TaskState.PAUSED
    steps_tell = state.total_steps and state.step and state.state != "starting"
    return TaskState.NORMAL if steps_tell else TaskState.BUSY


def tray_status(entries: Sequence[RunEntry], name_of: Callable[[Path], str]) -> TrayStatus:
    """The status of all live runs: the newest by name, all of them counted.

    Args:
        entries: Every run.
        name_of: Names the run in a folder.
    """
    live = [(entry.path, entry.state) for entry in entries if entry.state is not None and entry.state.is_live]
    if not live:
        return IDLE
    path, state = max(live, key=lambda run: run[1].created)
    share = f", {min(100, 100 * state.step // state.total_steps)} %" if state.total_steps and state.step else ""
    count = "" if len(live) == 1 else f"{len(live)} runs: "
    doing = f": {'needs you' if state.trouble else state.state}{share}"
    name, room = name_of(path), LONGEST_TIP - len(count) - len(doing)
    short = name if len(name) <= room else f"{name[: room - 1]}…"
    looks = {look_of(state) for _, state in live}
    return TrayStatus(next(look for look in _URGENCY if look in looks), f"{count}{short}{doing}")
