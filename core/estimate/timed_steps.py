"""Has ranks time steps of a run's model, all at the same time, and keeps what they found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.estimate.kept_figures import keep, kept_file, read_kept
from core.estimate.probe import LIMIT_S, PROGRAM, CancelledError, EstimateError, probe_environment, probe_request
from core.estimate.shape import steps_shape
from core.estimate.speed import StepKey, step_key
from core.estimate.step_figures import RankTimes, StepFigures, made_alone, made_together
from core.launch.resolved import ResolvedRun
from core.processes.ask import Answer, ask_programs
from core.recipes.check import error_in
from core.records import RecordError, read_record

_TITLE: Final = "The time could not be estimated"
_DOCTOR: Final = "Check this machine: rankdeck doctor"


def known_steps(run: ResolvedRun) -> dict[StepKey, StepFigures]:
    """Steps that were timed earlier, on each of the run's devices beside the others, and on the first one alone."""
    known = {key: _known_step(run, key) for key in _step_keys(run)}
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
    """The times of steps: kept ones, or made now, on all devices at the same time. Blocks.

    Args:
        run: What would be trained.
        limit_s: After that the ranks are ended.
        cancelled: Asked now and then; True ends them.
        at_once: On how many CPU devices, where memory has no room for all; None: on all.

    Raises:
        CancelledError: `cancelled` said so.
        RankdeckError: What the recipe itself would raise.
        EstimateError: No steps could be made, or they took too long.
    """

    def waiting(_folder: Path) -> None:
        if cancelled():
            raise CancelledError

    if steps_are_known(run):
        return known_steps(run)
    ranks = range(run.world_size if at_once is None else max(1, min(at_once, run.world_size)))
    requests = [_request(run, rank, len(ranks)) for rank in ranks]
    answers = ask_programs(PROGRAM, requests, [probe_environment(run, rank) for rank in ranks], limit_s, waiting)
    _check(answers, limit_s)
    try:
        times = [read_record(RankTimes, answer.values or {}) for answer in answers]
    except RecordError as error:
        raise EstimateError(f"The ranks gave no times ({error}).", _DOCTOR, title=_TITLE) from error
    for key, steps in _figures(run, times).items():
        keep(_steps_file(run, key), dataclasses.asdict(steps))
    return known_steps(run)


def _figures(run: ResolvedRun, times: Sequence[RankTimes]) -> dict[StepKey, StepFigures]:
    keys = [step_key(device, run) for device in run.devices]
    found = {
        key: made_together(times, [number for number in range(len(times)) if keys[number] == key] or [0])
        for key in set(keys)
    }
    alone = made_alone(times[0])
    return found if alone is None else {**found, _alone_key(run): alone}


def _check(answers: Sequence[Answer], limit_s: float) -> None:
    """Raises what the first rank that failed has said; ranks that waited for it fail after it."""
    errors = [error_in(answer.values or {}, EstimateError) for answer in answers]
    explained = [error for error in errors if error is not None]
    if explained:
        raise next((error for error in explained if not isinstance(error, EstimateError)), explained[0])
    if not all(answer.in_time for answer in answers) and all(answer.code in (None, 0) for answer in answers):
        cause = f"The time of a step could not be measured: the ranks did not finish within {limit_s:g} s."
        raise EstimateError(cause, _DOCTOR, title=_TITLE)
    for answer in answers:
        if answer.code not in (None, 0):
            cause = f"The time of a step could not be measured: a rank {answer.failure}."
            raise EstimateError(cause, _DOCTOR, title=_TITLE)


def _step_keys(run: ResolvedRun) -> list[StepKey]:
    """All steps that predictions need."""
    return list(dict.fromkeys([_alone_key(run), *(step_key(device, run) for device in run.devices)]))


def _alone_key(run: ResolvedRun) -> StepKey:
    return step_key(run.devices[0], replace(run, devices=run.devices[:1]))


def _request(run: ResolvedRun, rank: int, ranks: int) -> dict[str, Any]:
    """As for the memory; a rank's part of a chunk is what all ranks of a step share."""
    config, world = run.config, run.world_size if run.mode.is_connected else 1
    sizes = (config.dataset_chunk_size, config.samples_per_block)
    if run.recipe.own_samples and not any(size % world for size in sizes):
        part = config.replace(dataset_chunk_size=sizes[0] // world, samples_per_block=sizes[1] // world)
        run = replace(run, config=part)
    threads = step_key(run.devices[rank], run)[1]
    alone = _alone_key(run)[1] if run.world_size > 1 else None
    return {**probe_request(run), "rank": rank, "ranks": ranks, "threads": threads, "alone_threads": alone}


def _known_step(run: ResolvedRun, key: StepKey) -> StepFigures | None:
    kept = read_kept(_steps_file(run, key))
    try:
        return read_record(StepFigures, kept) if kept else None
    except RecordError:
        return None


def _steps_file(run: ResolvedRun, key: StepKey) -> Path:
    return kept_file(f"steps-{steps_shape(run, key)}")
