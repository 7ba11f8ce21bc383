"""Asks the probe program for an estimate's figures, and keeps its answers: by model, and by torch build."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.kept_figures import keep, kept_file, read_kept
from core.estimate.shape import model_shape
from core.launch.environment import defaults_of_rank, of_rank
from core.launch.resolved import ResolvedRun
from core.machine.platform import Platform
from core.parsing import parse_json
from core.processes.ask import ask_program
from core.recipes.check import error_in
from core.recipes.parameter_count import ParameterCount, read_count
from core.records import RecordError, Whole, read_record

LIMIT_S: Final = 120.0
"""For all that a probe does: about fifteen seconds where nothing else computes, longer beside other programs."""
PROGRAM: Final = ("-m", "workers.programs.estimate_main")
_FIGURES: Final = "figures.json"
_COUNT: Final = "count.json"
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
    return _figures(read_kept(_cache_file(run)))


def known_baselines(platform: Platform) -> Baselines | None:
    """What was measured with this torch build on this machine; None if nothing was."""
    kept = read_kept(_baselines_file(platform))
    try:
        return read_record(Baselines, kept) if kept else None
    except RecordError:
        return None


def find_figures(
    run: ResolvedRun,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
    counted: Callable[[ParameterCount], object] | None = None,
    rest_s: float = 0.0,
) -> ModelFigures:
    """The model's figures: kept ones, or measured now. Blocks; may be called from any thread.

    A probe that is too slow, or ended, gives what it had found by then, and a sentence in `note`.

    Args:
        run: What would be trained.
        limit_s: After that the probe is ended.
        cancelled: Asked now and then; True ends it.
        counted: Told the parameter count before the figures are measured, where the recipe's `build_model` says it.
        rest_s: How long the probe then waits, so that one that is cancelled by the next edit has measured nothing.

    Raises:
        RankdeckError: What the recipe itself would raise: a dataset, setting or package is missing.
        EstimateError: Not even the sizes could be found.
    """
    known = known_figures(run)
    if known is not None:
        return known
    partial: dict[str, Any] = {}
    request = probe_request(run)
    if counted is not None:
        request["counts_first"], request["rest_s"] = True, rest_s

    def waiting(folder: Path) -> None:
        partial.update(read_kept(folder / _FIGURES))
        if cancelled():
            raise CancelledError
        if counted is not None and request["counts_first"] and (count := read_count(read_kept(folder / _COUNT))):
            request["counts_first"] = False  # it is told once
            counted(count)

    answer = ask_program(PROGRAM, request, probe_environment(run), limit_s + rest_s, waiting)
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
        keep(_cache_file(run), values)
    return found


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

    answer = ask_program(PROGRAM, {"engines": engines}, probe_environment(run, gloo=True), limit_s, waiting)
    found = answer.values or {}
    if (error := error_in(found, EstimateError)) is not None:
        raise error
    try:
        peaks = read_record(_Peaks, {"of": found}).of
        sizes = {engine: peaks[engine]["rss_bytes"] for engine in engines if engine in peaks}
    except (RecordError, KeyError):
        raise EstimateError(
            f"The process to measure {answer.failure}.", "Check this machine: rankdeck doctor"
        ) from None
    extra = {engine: max(0, peaks[engine].get("commit_bytes", 0) - size) for engine, size in sizes.items()}
    if len(sizes) == len(engines):  # a DeepSpeed that cannot be used is left out; it may be repaired tomorrow
        keep(_baselines_file(run.platform), {"rss_bytes": sizes, "extra_commit_bytes": extra})
    return Baselines(sizes, extra)


@dataclass(frozen=True, slots=True)
class _Peaks:
    """The answer about bare processes: peaks of each engine, by name."""

    of: dict[str, dict[str, Whole]]


def _unknown_in(partial: Mapping[str, Any]) -> str:
    return "The allocator's gaps are" if "step_lines" in partial else "The activations are"


def probe_request(run: ResolvedRun) -> dict[str, Any]:
    """What the program is asked about a run's model."""
    return {
        "config": parse_json(to_json(run.config)),
        "recipe": str(run.recipe.folder),
        "micro_batch": run.batch.micro,
        "accumulation": run.batch.accumulation,
        "device": run.devices[0].kind,
    }


def probe_environment(run: ResolvedRun, rank: int = 0, *, gloo: bool = False) -> dict[str, str]:
    """A rank's: its allocator's settings decide how much memory it takes."""
    place = run.distributed(rank)
    own = of_rank(place.replace(backend="gloo") if gloo else place, run.devices, run.platform)
    return {**defaults_of_rank(run.config, run.devices[rank], run.platform, own_program=True), **own, **run.config.env}


def _cache_file(run: ResolvedRun) -> Path:
    return kept_file(model_shape(run))


def _baselines_file(platform: Platform) -> Path:
    build = f"{platform.torch_version} {platform.deepspeed_version} {platform.physical_cores}"
    return kept_file(f"bare-{hashlib.sha256(build.encode('utf-8')).hexdigest()[:16]}")


def _figures(values: Mapping[str, Any]) -> ModelFigures | None:
    try:
        return read_record(ModelFigures, values) if values else None
    except RecordError:
        return None
