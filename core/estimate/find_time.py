"""Finds what a prediction of time is made of: timed steps, the link between the devices, and earlier runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from core.errors import RankdeckError
from core.estimate.figures import ModelFigures
from core.estimate.past_runs import past_error, past_runs
from core.estimate.probe import CancelledError
from core.estimate.speed import TimeFigures
from core.estimate.timed_steps import find_steps, known_steps, steps_are_known
from core.launch.resolved import ResolvedRun
from core.probes.link_speed import keep_link, known_link, measure_link
from core.probes.sync_cost import Link

ROOM: Final = 0.5
"""Share of the free memory that timed steps may take, on all CPU devices together."""


def known_time(run: ResolvedRun, runs_dir: Path) -> TimeFigures:
    """What was measured earlier; starts nothing."""
    past = past_runs(run, runs_dir), "", past_error(runs_dir)
    return TimeFigures(known_steps(run), _known_link(run, runs_dir), *past)


def time_is_known(run: ResolvedRun, runs_dir: Path) -> bool:
    """Whether `find_time` has nothing to measure."""
    return steps_are_known(run) and (run.world_size < 2 or _known_link(run, runs_dir) is not None)


def find_time(
    run: ResolvedRun, figures: ModelFigures, runs_dir: Path, *, cancelled: Callable[[], bool] = lambda: False
) -> TimeFigures:
    """The same, measured now where it is not known. Blocks for about ten seconds; may be called from any thread.

    What cannot be measured is left out, with a sentence in `note`.

    Args:
        run: What would be trained.
        figures: Its model's: no step is made that would take more than half of the free memory.
        runs_dir: Where links and earlier runs are kept.
        cancelled: Asked now and then; True ends it.

    Raises:
        CancelledError: `cancelled` said so.
    """
    notes = []
    steps, link = known_steps(run), _known_link(run, runs_dir)
    try:
        at_once = _at_once(run, figures)
        if at_once:
            steps = find_steps(run, cancelled=cancelled, at_once=at_once)
        elif not steps_are_known(run):
            notes.append("Steps would take too much memory beside what is running, so none was timed.")
        timed = min((one.devices for key, one in steps.items() if key[2] > 1), default=run.world_size)
        if timed < run.world_size:
            notes.append(f"Memory had room to time {timed} of {run.world_size} devices at once; all may be slower.")
    except CancelledError:
        raise
    except RankdeckError as error:
        notes.append(error.cause)
    if run.world_size > 1 and link is None:
        try:
            link = measure_link(run.devices, run.platform, cancelled=cancelled)
            keep_link(link, run.devices, run.platform, runs_dir)
        except RankdeckError as error:
            if cancelled():
                raise CancelledError from None
            notes.append(error.cause)
    return TimeFigures(steps, link, past_runs(run, runs_dir), " ".join(notes), past_error(runs_dir))


def _known_link(run: ResolvedRun, runs_dir: Path) -> Link | None:
    return known_link(run.devices, run.platform, runs_dir) if run.world_size > 1 else None


def _at_once(run: ResolvedRun, figures: ModelFigures) -> int:
    """On how many devices steps can be tried: on CPU devices too large ones would end other programs."""
    if figures.note or not figures.is_measured:
        return 0
    if run.devices[0].kind != "cpu":
        return run.world_size
    held = figures.parameter_bytes + round((1 + figures.optimizer_ratio) * figures.trainable_bytes)
    need = held + figures.pass_bytes(run.batch.micro, adds=False)
    return min(run.world_size, int(ROOM * psutil.virtual_memory().available / max(1, need)))
