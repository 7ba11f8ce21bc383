"""Probe: a process measures a model, or bare ranks; the figures are kept by model and by torch build."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.launch.plan import MeasureKind
from core.launch.resolved import ResolvedRun
from core.machine.platform import Platform
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.shape import model_shape
from core.measure.ranks import MeasuringRanks
from core.parsing import parse_json
from core.paths import default_runs_dir
from core.recipes.check import error_in
from core.recipes.parameter_formula import ParameterCount, read_count
from core.records import RecordError, Whole, read_record

# For all that a probe does: about fifteen seconds where nothing else computes, longer beside other programs.
LIMIT_S: Final = 120.0
# Beside the answer: what is known so far, and the parameter count.
_FIGURES: Final = "figures.json"
_COUNT: Final = "count.json"
_ENGINES: Final = ("single", "ddp", "zero1", "fsdp", "deepspeed")
_DOCTOR: Final = "Check this machine: rankdeck doctor"
T = TypeVar("T")


class EstimateError(RankdeckError):
    """The figures of an estimate could not be measured."""

    title = "The memory could not be estimated"


def known_figures(run: ResolvedRun) -> ModelFigures | None:
    """Return the figures of an earlier probe of this model; None if there was none."""
    return read_kept(ModelFigures, model_shape(run))


def known_baselines(platform: Platform) -> Baselines | None:
    """Return the peaks measured with this torch build on this machine; None if there are none."""
    return read_kept(Baselines, baselines_name(platform))


def find_figures(
    run: ResolvedRun,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
    counted: Callable[[ParameterCount], object] | None = None,
) -> ModelFigures:
    """Return the model's figures: kept ones, or measured now. Blocks; may be called from any thread.

    A probe that is too slow, or ended, gives its figures so far, and a sentence in `note`.

    Args:
        run: To be trained.
        limit_s: After that the probe is ended.
        cancelled: Asked now and then; True ends it.
        counted: Gets the parameter count before the figures are measured, where the recipe has a `build_model`.

    Raises:
        CancelledError: `cancelled` said so.
        RankdeckError: The recipe refuses the run: a dataset, setting or package is missing.
        EstimateError: Not even the sizes could be found.
    """
    known = known_figures(run)
    if known is not None:
        return known
    partial: dict[str, Any] = {}
    counts: list[ParameterCount] = []

    def waiting(folder: Path) -> None:
        partial.update(_read_answer(folder / _FIGURES))
        if counted is not None and not counts and (count := read_count(_read_answer(folder / _COUNT))):
            counts.append(count)
            counted(count)

    with MeasuringRanks.of_run(run, "figures", cancelled, 1) as ranks:
        answers = ranks.ask(model_request(run, "figures"), limit_s, waiting)
    values, failure = answers.values[0], answers.failure
    if values is None:
        took = f"ended early: it {failure}" if failure else f"did not finish within {limit_s:g} s"
        values = {**partial, "note": f"{_unknown_in(partial)} unknown, because the probe {took}."}
    elif (error := error_in(values, EstimateError)) is not None and not partial:
        raise error
    elif error is not None:
        values = {**partial, "note": f"{_unknown_in(partial)} unknown: {error.cause}"}
    try:
        found = read_record(ModelFigures, values)
    except RecordError:
        raise EstimateError(f"The probe {failure or f'did not finish within {limit_s:g} s'}.", _DOCTOR) from None
    if found.is_complete:  # else the next probe may have more time
        keep(model_shape(run), values)
    return found


@dataclass(frozen=True, slots=True)
class _BarePeaks:
    """The peaks of bare processes, by engine."""

    peaks: dict[str, dict[str, Whole]]


def find_baselines(run: ResolvedRun, *, cancelled: Callable[[], bool] = lambda: False) -> Baselines:
    """Return the memory of bare ranks with this torch build: kept, or measured now.

    Raises:
        CancelledError: `cancelled` said so.
        EstimateError: None could be started, or they took too long.
    """
    known = known_baselines(run.platform)
    if known is not None:
        return known
    engines = [engine for engine in _ENGINES if engine != "deepspeed" or run.platform.deepspeed_version is not None]
    with MeasuringRanks.of_run(run, "bare", cancelled, 1) as ranks:
        answers = ranks.ask({"kind": "bare", "engines": engines}, LIMIT_S)
    found = answers.values[0] or {}
    if (error := error_in(found, EstimateError)) is not None:
        raise error
    try:
        peaks = read_record(_BarePeaks, found).peaks
        sizes = {engine: peaks[engine]["rss_bytes"] for engine in engines if engine in peaks}
    except (RecordError, KeyError):
        failure = answers.failure or f"did not finish within {LIMIT_S:g} s"
        raise EstimateError(f"The process to measure {failure}.", _DOCTOR) from None
    extra = {engine: max(0, peaks[engine].get("commit_bytes", 0) - size) for engine, size in sizes.items()}
    # A DeepSpeed that cannot be used is left out; it may be repaired tomorrow.
    if len(sizes) == len(engines):
        keep(baselines_name(run.platform), {"rss_bytes": sizes, "extra_commit_bytes": extra})
    return Baselines(sizes, extra)


def model_request(run: ResolvedRun, kind: MeasureKind) -> dict[str, Any]:
    """Make a request about a run's model."""
    return {
        "kind": kind,
        "config": parse_json(to_json(run.config)),
        "recipe": str(run.recipe.folder),
        "micro_batch": run.batch.micro,
        "accumulation": run.batch.accumulation,
    }


def _unknown_in(partial: Mapping[str, Any]) -> str:
    return "The allocator's gaps are" if "step_lines" in partial else "The activations are"


def baselines_name(platform: Platform) -> str:
    """Name the figures of bare ranks with this torch build."""
    build = f"{platform.torch_version} {platform.deepspeed_version} {platform.physical_cores}"
    return f"bare-{hashlib.sha256(build.encode('utf-8')).hexdigest()[:16]}"


def read_kept(kind: type[T], name: str) -> T | None:
    """Read the figures kept under a name; None if there are none, or they cannot be read."""
    try:
        return read_record(kind, read_json(_kept_file(name)))
    except (RankdeckError, RecordError):
        return None


def keep(name: str, values: Mapping[str, Any]) -> None:
    """Keep figures in the cache of the folder of runs; one that cannot be written is ignored."""
    path = _kept_file(name)
    with contextlib.suppress(OSError, RankdeckError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(values))


def _kept_file(name: str) -> Path:
    return default_runs_dir() / "cache" / "estimates" / f"{name}.json"


def _read_answer(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except RankdeckError:
        return {}
    return found if isinstance(found, dict) else {}
