"""Past runs of the same shape: what they achieved says how long a run takes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from core.estimate.estimate import mode_runs
from core.estimate.shape import run_shape
from core.estimate.speed import PastRun
from core.estimate.time_history import TIME, known_error, read_time
from core.launch.resolved import ResolvedRun
from core.run_folder.store import RunEntry, read_entry

MOST_RUNS: Final = 200
"""Reading one takes a tenth of a millisecond."""


def past_runs(run: ResolvedRun, runs_dir: Path) -> dict[str, PastRun]:
    """The newest earlier run of the same shape in each mode, by the mode's name; of the newest `MOST_RUNS` folders."""
    shapes = {run_shape(other.run): other.name for other in mode_runs(run) if other.run is not None}
    found: dict[str, PastRun] = {}
    for folder in _newest(runs_dir):
        time = read_time(folder)
        name = "" if time is None else shapes.get(time.shape, "")
        if time is None or not name or name in found or time.step_s is None or not time.samples_per_s:
            continue
        entry = read_entry(folder)
        if entry is not None and entry.state is not None and not entry.state.is_live:
            found[name] = PastRun(time.step_s, time.samples_per_s, _power_w(entry))
    return found


def past_error(runs_dir: Path) -> float | None:
    """How far off predictions of time were in earlier runs (`core.estimate.time_history.known_error`)."""
    times = (read_time(folder) for folder in _newest(runs_dir))
    return known_error(time for time in times if time is not None)


def _newest(runs_dir: Path) -> list[Path]:
    """Folders with a record of their time."""
    written: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError), os.scandir(runs_dir) as folders:
        for folder in folders:
            path = Path(folder.path)
            with contextlib.suppress(OSError):
                written.append(((path / TIME).stat().st_mtime, path))
    return [path for _, path in sorted(written, reverse=True)[:MOST_RUNS]]


def _power_w(entry: RunEntry) -> float | None:
    """Mean power of a run's GPUs while it trained; None where none was counted."""
    state = entry.state
    if state is None or state.energy_j is None or state.trained_s <= 0:
        return None
    return state.energy_j / state.trained_s
