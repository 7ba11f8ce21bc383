"""Seconds of an optimizer step on each device of a run: real steps that its ranks make at the same time, and kept."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil

from core.errors import RankdeckError
from core.launch.mode import check_gloo
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.history import TIME, PastRun, RunTime, read_time
from core.measure.estimate.modes import mode_runs
from core.measure.estimate.probe import LIMIT_S, EstimateError, keep, model_request, read_kept
from core.measure.estimate.shape import StepKey, run_shape, step_key, steps_shape
from core.measure.estimate.speed import StepFigures, TimeFigures
from core.measure.link import Link, keep_link, known_link, measure_link
from core.measure.ranks import Answers, CancelledError, MeasuringRanks
from core.recipes.check import error_in
from core.records import RecordError, read_record
from core.run_folder.store import read_entry

# Share of the free memory that timed steps may take, on all CPU devices together.
ROOM: Final = 0.5
# Folders of earlier runs that are looked at, the newest ones: reading one takes a tenth of a millisecond.
MOST_RUNS: Final = 200
_TITLE: Final = "The time could not be estimated"
_DOCTOR: Final = "Check this machine: rankdeck doctor"


@dataclass(frozen=True, slots=True)
class _RankTimes:
    """One rank's times: beside all others, and on the first rank while the others did nothing."""

    together: StepFigures
    alone: StepFigures | None = None


def known_time(run: ResolvedRun, runs_dir: Path) -> TimeFigures:
    """Return the earlier measurements; starts nothing."""
    return TimeFigures(known_steps(run), _known_link(run, runs_dir), past_runs(run, runs_dir))


def time_is_known(run: ResolvedRun, runs_dir: Path) -> bool:
    """Whether `find_time` has nothing to measure."""
    return steps_are_known(run) and (run.world_size < 2 or _known_link(run, runs_dir) is not None)


def find_time(
    run: ResolvedRun, figures: ModelFigures, runs_dir: Path, *, cancelled: Callable[[], bool] = lambda: False
) -> TimeFigures:
    """Measure steps and link where they are not known. Blocks for about ten seconds; may be called from any thread.

    A part that cannot be measured is left out, with a sentence in `note`.

    Args:
        run: To be trained.
        figures: Its model's: no step is made that would take more than half of the free memory.
        runs_dir: The folder with links and earlier runs.
        cancelled: Asked now and then; True ends it.

    Raises:
        CancelledError: `cancelled` said so.
    """
    known = known_time(run, runs_dir)
    notes: list[str] = []
    steps, link = known.steps, known.link
    with _noting(notes):
        at_once = _at_once(run, figures)
        if at_once:
            steps = find_steps(run, cancelled=cancelled, at_once=at_once)
        elif not steps_are_known(run):
            notes.append("Steps would take too much memory beside what is running, so none was timed.")
        timed = min((one.devices for key, one in steps.items() if key[2] > 1), default=run.world_size)
        if timed < run.world_size:
            notes.append(f"Memory had room to time {timed} of {run.world_size} devices at once; all may be slower.")
    if run.world_size > 1 and link is None:
        with _noting(notes):
            link = measure_link(run.devices, run.platform, cancelled=cancelled)
            keep_link(link, run.devices, run.platform, runs_dir)
    return replace(known, steps=steps, link=link, note=" ".join(notes))


@contextlib.contextmanager
def _noting(notes: list[str]) -> Iterator[None]:
    """Note the cause of an error instead of raising it; a cancellation goes through."""
    try:
        yield
    except CancelledError:
        raise
    except RankdeckError as error:
        notes.append(error.cause)


def known_steps(run: ResolvedRun) -> dict[StepKey, StepFigures]:
    """Return the steps timed earlier, on each of the run's devices beside the others, and on the first one alone."""
    known = {key: read_kept(StepFigures, _steps_name(run, key)) for key in _step_keys(run)}
    return {key: steps for key, steps in known.items() if steps is not None}


def steps_are_known(run: ResolvedRun) -> bool:
    """Whether nothing is left to be timed."""
    return len(known_steps(run)) == len(_step_keys(run))


def find_steps(
    run: ResolvedRun,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
    at_once: int | None = None,
) -> dict[StepKey, StepFigures]:
    """Return the times of steps: kept ones, or made now, on all devices at the same time. Blocks.

    Args:
        run: To be trained.
        limit_s: After that the ranks are ended.
        cancelled: Asked now and then; True ends them.
        at_once: Number of CPU devices, where memory has no room for all; None: all.

    Raises:
        CancelledError: `cancelled` said so.
        RankdeckError: The recipe refuses the run.
        EstimateError: No steps could be made, or they took too long.
    """
    if steps_are_known(run):
        return known_steps(run)
    count = run.world_size if at_once is None else max(1, min(at_once, run.world_size))
    if count > 1:
        check_gloo(run.platform)  # ranks begin each step together
    with MeasuringRanks.of_run(run, "times", cancelled, count) as ranks:
        found = ranks.ask(_request(run, count), limit_s)
    _check(found, limit_s)
    try:
        times = [read_record(_RankTimes, values) for values in found.values]
    except RecordError as error:
        raise EstimateError(f"The ranks gave no times ({error}).", _DOCTOR, title=_TITLE) from error
    for key, steps in _figures(run, times).items():
        keep(_steps_name(run, key), dataclasses.asdict(steps))
    return known_steps(run)


def past_runs(run: ResolvedRun, runs_dir: Path) -> dict[str, PastRun]:
    """Find each mode's newest earlier run of the same shape, by the mode's name, in the newest `MOST_RUNS` folders."""
    shapes = {run_shape(other.run): other.variant.name for other in mode_runs(run) if other.run is not None}
    found: dict[str, PastRun] = {}
    for folder, time in _newest(runs_dir):
        name = shapes.get(time.shape, "")
        if not name or name in found or time.step_s is None or not time.samples_per_s:
            continue
        entry = read_entry(folder)
        state = None if entry is None else entry.state
        if state is not None and not state.is_live:
            found[name] = PastRun(time.step_s, time.samples_per_s)
    return found


def _newest(runs_dir: Path) -> Iterator[tuple[Path, RunTime]]:
    """Iterate over folders of runs with a record of their time."""
    written: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError), os.scandir(runs_dir) as folders:
        for folder in folders:
            with contextlib.suppress(OSError):
                written.append(((Path(folder.path) / TIME).stat().st_mtime, Path(folder.path)))
    for _, path in sorted(written, reverse=True)[:MOST_RUNS]:
        if (time := read_time(path)) is not None:
            yield path, time


def _at_once(run: ResolvedRun, figures: ModelFigures) -> int:
    """Number of devices on which steps can be tried: on CPU devices too large ones would end other programs."""
    if figures.note or not figures.is_measured:
        return 0
    if run.devices[0].kind != "cpu":
        return run.world_size
    held = figures.parameter_bytes + round((1 + figures.optimizer_ratio) * figures.trainable_bytes)
    need = held + figures.pass_bytes(run.batch.micro, adds=False)
    return min(run.world_size, int(ROOM * psutil.virtual_memory().available / max(1, need)))


def _figures(run: ResolvedRun, times: Sequence[_RankTimes]) -> dict[StepKey, StepFigures]:
    """Means over devices that are alike."""
    keys = [step_key(device, run) for device in run.devices]
    found = {}
    for key in set(keys):
        alike = [one.together for number, one in enumerate(times) if keys[number] == key] or [times[0].together]
        found[key] = replace(
            alike[0],
            pass_s=statistics.fmean(one.pass_s for one in alike),
            update_s=statistics.fmean(one.update_s for one in alike),
            prepare_s=statistics.fmean(one.prepare_s for one in alike),
            steps=min(one.steps for one in alike),
            devices=len(times),
        )
    alone = times[0].alone
    return found if alone is None else {**found, _alone_key(run): alone}


def _check(found: Answers, limit_s: float) -> None:
    """Raise the error of the rank that failed first; one that waited for it fails after it."""
    title = "The time of a step could not be measured"
    if found.deaths:
        raise EstimateError(f"{title}: a rank {found.failure}.", _DOCTOR, title=_TITLE)
    for values in found.values:
        if (error := error_in(values or {}, EstimateError)) is not None:
            raise error
    if None in found.values:
        cause = f"{title}: the ranks did not finish within {limit_s:g} s."
        raise EstimateError(cause, _DOCTOR, title=_TITLE)


def _step_keys(run: ResolvedRun) -> list[StepKey]:
    return list(dict.fromkeys([_alone_key(run), *(step_key(device, run) for device in run.devices)]))


def _alone_key(run: ResolvedRun) -> StepKey:
    return step_key(run.devices[0], replace(run, devices=run.devices[:1]))


def _request(run: ResolvedRun, ranks: int) -> dict[str, Any]:
    """Make the request; all ranks of a step share a chunk, so each gets its part."""
    config, world = run.config, run.world_size if run.mode.is_connected else 1
    sizes = (config.dataset_chunk_size, config.samples_per_block)
    if run.recipe.own_samples and not any(size % world for size in sizes):
        part = config.replace(dataset_chunk_size=sizes[0] // world, samples_per_block=sizes[1] // world)
        run = replace(run, config=part)
    threads = [step_key(device, run)[1] for device in run.devices[:ranks]]
    alone = _alone_key(run)[1] if run.world_size > 1 else None
    return {**model_request(run, "times"), "ranks": ranks, "threads": threads, "alone_threads": alone}


def _known_link(run: ResolvedRun, runs_dir: Path) -> Link | None:
    return known_link(run.devices, run.platform, runs_dir) if run.world_size > 1 else None


def _steps_name(run: ResolvedRun, key: StepKey) -> str:
    return f"steps-{steps_shape(run, key)}"
