"""Asks the probe program for an estimate's figures, and keeps its answers: by model, by step, and by torch build."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.shape import model_shape, steps_shape
from core.estimate.speed import StepKey, step_key
from core.estimate.step_figures import StepFigures
from core.files.atomic import read_json, write_atomic
from core.launch.environment import defaults_of_rank, of_rank
from core.launch.resolved import ResolvedRun
from core.machine.platform import Platform
from core.parsing import parse_json
from core.paths import default_runs_dir
from core.processes.ask import ask_program
from core.recipes.check import error_in
from core.records import RecordError, Whole, read_record

LIMIT_S: Final = 120.0
"""For all that a probe does: about fifteen seconds where nothing else computes, longer beside other programs."""
_PROGRAM: Final = ("-m", "workers.programs.estimate_main")
_FIGURES: Final = "figures.json"
_TIMES: Final = "times"
_ENGINES: Final = ("single", "ddp", "zero1", "fsdp", "deepspeed")


class EstimateError(RankdeckError):
    """Nothing could be found out."""

    title = "The memory could not be estimated"


class CancelledError(EstimateError):
    """The answer is not waited for any more."""

    def __init__(self) -> None:
        super().__init__("The estimate was cancelled.", "You can estimate again at any time.")


def known_figures(run: ResolvedRun) -> ModelFigures | None:
    """What an earlier probe of this model found; None if there was none."""
    return _figures(_read(_cache_file(run)))


def known_baselines(platform: Platform) -> Baselines | None:
    """What was measured with this torch build on this machine; None if nothing was."""
    kept = _read(_baselines_file(platform))
    try:
        return read_record(Baselines, kept) if kept else None
    except RecordError:
        return None


def find_figures(
    run: ResolvedRun, *, limit_s: float = LIMIT_S, cancelled: Callable[[], bool] = lambda: False
) -> ModelFigures:
    """The model's figures: kept ones, or measured now. Blocks; may be called from any thread.

    A probe that is too slow, or ended, gives what it had found by then, and a sentence in `note`.

    Args:
        run: What would be trained.
        limit_s: After that the probe is ended.
        cancelled: Asked now and then; True ends it.

    Raises:
        RankdeckError: What the recipe itself would raise: a dataset, setting or package is missing.
        EstimateError: Not even the sizes could be found.
    """
    known = known_figures(run)
    if known is not None:
        return known
    partial: dict[str, Any] = {}

    def waiting(folder: Path) -> None:
        partial.update(_read(folder / _FIGURES))
        if cancelled():
            raise CancelledError

    untimed = [key for key, rank in _step_keys(run).items() if rank == 0 and _known_step(run, key) is None]
    asked = _request(run, [threads for _, threads in untimed])
    answer = ask_program(_PROGRAM, asked, _environment(run), limit_s, waiting)
    values = answer.values
    if values is None:
        took = f"did not finish within {limit_s:g} s" if not answer.in_time else f"ended early: it {answer.failure}"
        values = {**partial, "note": f"{_unknown_in(partial)} unknown, because the probe {took}."}
    elif (error := error_in(values, EstimateError)) is not None and not partial:
        raise error
    elif error is not None:
        values = {**partial, "note": f"{_unknown_in(partial)} unknown: {error.cause}"}
    found = _figures(values)
    if found is None:
        raise EstimateError(f"The probe {answer.failure}.", "Check this machine: rankdeck doctor")
    if found.is_measured:
        _write(_cache_file(run), {name: value for name, value in values.items() if name != _TIMES})
        _keep_steps(run, untimed, values)
    return found


def known_steps(run: ResolvedRun) -> dict[StepKey, StepFigures]:
    """Steps that were timed earlier, on the run's devices by themselves: as one of all its ranks, and alone."""
    known = {key: _known_step(run, key) for key in _step_keys(run)}
    return {key: steps for key, steps in known.items() if steps is not None}


def steps_are_known(run: ResolvedRun) -> bool:
    """Whether nothing is left to be timed."""
    return len(known_steps(run)) == len(_step_keys(run))


def find_steps(
    run: ResolvedRun, *, limit_s: float = LIMIT_S, cancelled: Callable[[], bool] = lambda: False
) -> dict[StepKey, StepFigures]:
    """The times of steps: kept ones, or made now, on one device after the other. Blocks.

    Raises:
        RankdeckError: What the recipe itself would raise.
        EstimateError: No steps could be made, or they took too long.
    """

    def waiting(_folder: Path) -> None:
        if cancelled():
            raise CancelledError

    missing = {key: rank for key, rank in _step_keys(run).items() if _known_step(run, key) is None}
    for rank in sorted(set(missing.values())):
        keys = [key for key, first in missing.items() if first == rank]
        asked = _request(run, [threads for _, threads in keys], only_times=True)
        answer = ask_program(_PROGRAM, asked, _environment(run, rank), limit_s, waiting)
        if (error := error_in(answer.values or {}, EstimateError)) is not None:
            raise error
        if answer.values is None or not _keep_steps(run, keys, answer.values):
            cause = "The time of a step could not be measured: the process "
            raise EstimateError(
                cause + (f"{answer.failure}." if answer.in_time else f"did not finish within {limit_s:g} s."),
                "Check this machine: rankdeck doctor",
                title="The time could not be estimated",
            )
    return known_steps(run)


def _step_keys(run: ResolvedRun) -> dict[StepKey, int]:
    """All steps that predictions need, and the rank on whose device each is made."""
    alone = replace(run, devices=run.devices[:1])
    keys = {step_key(run.devices[0], alone): 0}
    for rank, device in enumerate(run.devices):
        keys.setdefault(step_key(device, run), rank)
    return keys


def _request(run: ResolvedRun, threads: Sequence[int], *, only_times: bool = False) -> dict[str, Any]:
    return {
        "config": parse_json(to_json(run.config)),
        "recipe": str(run.recipe.folder),
        "micro_batch": run.batch.micro,
        "accumulation": run.batch.accumulation,
        "device": run.devices[0].kind,
        "threads": list(threads),
        "only_times": only_times,
    }


def _known_step(run: ResolvedRun, key: StepKey) -> StepFigures | None:
    kept = _read(_steps_file(run, key))
    try:
        return read_record(StepFigures, kept) if kept else None
    except RecordError:
        return None


def _keep_steps(run: ResolvedRun, keys: Sequence[StepKey], values: Mapping[str, Any]) -> bool:
    """Keeps the times of an answer, which are in the order of the question; False where there are none."""
    times = values.get(_TIMES)
    if not isinstance(times, list) or len(times) != len(keys):
        return False
    for key, steps in zip(keys, times, strict=True):
        _write(_steps_file(run, key), steps)
    return True


def find_baselines(
    run: ResolvedRun, *, limit_s: float = LIMIT_S, cancelled: Callable[[], bool] = lambda: False
) -> Baselines:
    """The memory of bare ranks with this torch build: kept, or measured now.

    Raises:
        EstimateError: None could be started, or they took too long.
    """
    known = known_baselines(run.platform)
    if known is not None:
        return known
    engines = [engine for engine in _ENGINES if engine != "deepspeed" or run.platform.deepspeed_version is not None]

    def waiting(_folder: Path) -> None:
        if cancelled():
            raise CancelledError

    answer = ask_program(_PROGRAM, {"engines": engines}, _environment(run, gloo=True), limit_s, waiting)
    found = answer.values or {}
    if (error := error_in(found, EstimateError)) is not None:
        raise error
    try:
        peaks = read_record(_Peaks, {"of": found}).of
        sizes = {engine: peaks[engine]["rss_bytes"] for engine in engines}
    except (RecordError, KeyError):
        raise EstimateError(
            f"The process to measure {answer.failure}.", "Check this machine: rankdeck doctor"
        ) from None
    extra = {engine: max(0, peaks[engine].get("commit_bytes", 0) - size) for engine, size in sizes.items()}
    _write(_baselines_file(run.platform), {"rss_bytes": sizes, "extra_commit_bytes": extra})
    return Baselines(sizes, extra)


@dataclass(frozen=True, slots=True)
class _Peaks:
    """The answer about bare processes: peaks of each engine, by name."""

    of: dict[str, dict[str, Whole]]


def _unknown_in(partial: Mapping[str, Any]) -> str:
    return "The allocator's gaps are" if "step_lines" in partial else "The activations are"


def _environment(run: ResolvedRun, rank: int = 0, *, gloo: bool = False) -> dict[str, str]:
    """A rank's: its allocator's settings decide how much memory it takes."""
    backend = "gloo" if gloo else run.backend
    own = of_rank(rank, run.devices, run.platform, backend)
    return {**defaults_of_rank(run.config, run.devices[rank], run.platform, own_program=True), **own, **run.config.env}


def _cache_file(run: ResolvedRun) -> Path:
    return _folder() / f"{model_shape(run)}.json"


def _steps_file(run: ResolvedRun, key: StepKey) -> Path:
    return _folder() / f"steps-{steps_shape(run, key)}.json"


def _baselines_file(platform: Platform) -> Path:
    build = f"{platform.torch_version} {platform.deepspeed_version} {platform.physical_cores}"
    return _folder() / f"bare-{hashlib.sha256(build.encode('utf-8')).hexdigest()[:16]}.json"


def _folder() -> Path:
    return default_runs_dir() / "cache" / "estimates"


def _figures(values: Mapping[str, Any]) -> ModelFigures | None:
    try:
        return read_record(ModelFigures, values) if values else None
    except RecordError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except RankdeckError:
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Says nothing when the folder cannot be written: it is measured again when it is needed again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(values))
    except (OSError, RankdeckError):
        return
