"""Seconds of an optimizer step on each device of a run: real steps that its ranks make at the same time, and kept."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psutil

from core.errors import RankdeckError
from core.launch.mode import check_gloo
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.probe import LIMIT_S, keep, model_request, read_kept
from core.measure.estimate.shape import StepKey, link_name, step_key, steps_shape
from core.measure.estimate.speed import StepFigures, TimeFigures
from core.measure.link import Link, measure_link
from core.measure.ranks import CancelledError, MeasuringRanks

# Share of the free memory that timed steps may take, on all CPU devices together.
ROOM: Final = 0.5


@dataclass(frozen=True, slots=True)
class _RankTimes:
    """One rank's times: beside all others, and on the first rank while the others did nothing."""

    together: StepFigures
    alone: StepFigures | None = None


def known_time(run: ResolvedRun) -> TimeFigures:
    """Return the earlier measurements; starts nothing."""
    link = read_kept(Link, link_name(run)) if run.world_size > 1 else None
    return TimeFigures(known_steps(run), link)


def time_is_known(run: ResolvedRun) -> bool:
    """Whether `find_time` has nothing to measure."""
    return steps_are_known(run) and (run.world_size < 2 or known_time(run).link is not None)


def find_time(run: ResolvedRun, figures: ModelFigures, *, cancelled: Callable[[], bool] = lambda: False) -> TimeFigures:
    """Measure steps and link where they are not known. Blocks for about ten seconds; may be called from any thread.

    A part that cannot be measured is left out, with a sentence in `note`.

    Args:
        run: To be trained.
        figures: Its model's: no step is made that would take more than half of the free memory.
        cancelled: Asked now and then; True ends it.

    Raises:
        CancelledError: `cancelled` said so.
    """
    known = known_time(run)
    notes: list[str] = []
    steps, link = known.steps, known.link
    with _noting(notes):
        if _has_room(run, figures):
            steps = find_steps(run, cancelled=cancelled)
        elif not steps_are_known(run):
            notes.append("Steps would take too much memory beside what is running, so none was timed.")
    if run.world_size > 1 and link is None:
        with _noting(notes):
            link = measure_link(run.devices, run.platform, cancelled=cancelled)
            keep(link_name(run), dataclasses.asdict(link))
    return TimeFigures(steps, link, " ".join(notes))


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
) -> dict[StepKey, StepFigures]:
    """Return the times of steps: kept ones, or made now, on all devices at the same time. Blocks.

    Args:
        run: To be trained.
        limit_s: After that the ranks are ended.
        cancelled: Asked now and then; True ends them.

    Raises:
        CancelledError: `cancelled` said so.
        RankdeckError: The recipe refuses the run.
        MeasurementError: No steps could be made, or they took too long.
    """
    if steps_are_known(run):
        return known_steps(run)
    if run.world_size > 1:
        check_gloo(run.platform)  # ranks begin each step together
    with MeasuringRanks.of_run(run, "times", cancelled) as ranks:
        found = ranks.ask(_request(run), limit_s)
    times = found.read(_RankTimes, "The time of a step", limit_s)
    for key, steps in _figures(run, times).items():
        keep(_steps_name(run, key), dataclasses.asdict(steps))
    return known_steps(run)


def _has_room(run: ResolvedRun, figures: ModelFigures) -> bool:
    """Whether steps can be tried: on CPU devices too large ones would end other programs."""
    if not figures.is_complete:
        return False
    if run.devices[0].kind != "cpu":
        return True
    held = figures.parameter_bytes + round((1 + figures.optimizer_ratio) * figures.trainable_bytes)
    need = held + figures.pass_bytes(run.batch.micro, adds=False)
    return run.world_size * need <= ROOM * psutil.virtual_memory().available


def _figures(run: ResolvedRun, times: Sequence[_RankTimes]) -> dict[StepKey, StepFigures]:
    """Means over devices that are alike."""
    keys = [step_key(device, run) for device in run.devices]
    found = {}
    for key in set(keys):
        alike = [one.together for one, own in zip(times, keys, strict=True) if own == key]
        found[key] = replace(
            alike[0],
            pass_s=statistics.fmean(one.pass_s for one in alike),
            update_s=statistics.fmean(one.update_s for one in alike),
            prepare_s=statistics.fmean(one.prepare_s for one in alike),
        )
    alone = times[0].alone
    return found if alone is None else {**found, _alone_key(run): alone}


def _step_keys(run: ResolvedRun) -> list[StepKey]:
    return list(dict.fromkeys([_alone_key(run), *(step_key(device, run) for device in run.devices)]))


def time_key(run: ResolvedRun) -> str:
    """Name all that `find_time` measures."""
    return " ".join([link_name(run), *(_steps_name(run, key) for key in _step_keys(run))])


def _alone_key(run: ResolvedRun) -> StepKey:
    return step_key(run.devices[0], replace(run, devices=run.devices[:1]))


def _request(run: ResolvedRun) -> dict[str, Any]:
    """Make the request; all ranks of a step share a chunk, so each gets its part."""
    config, world = run.config, run.world_size if run.mode.is_connected else 1
    sizes = (config.dataset_chunk_size, config.samples_per_block)
    if run.recipe.own_samples and not any(size % world for size in sizes):
        part = config.replace(dataset_chunk_size=sizes[0] // world, samples_per_block=sizes[1] // world)
        run = replace(run, config=part)
    threads = [step_key(device, run)[1] for device in run.devices]
    alone = _alone_key(run)[1] if run.world_size > 1 else None
    return {**model_request(run, "times"), "threads": threads, "alone_threads": alone}


def _steps_name(run: ResolvedRun, key: StepKey) -> str:
    return f"steps-{steps_shape(run, key)}"
