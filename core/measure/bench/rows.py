"""Results of a benchmark as values, and the rows of its table, all numbers. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from core.launch.resolved import ResolvedRun
from core.measure.bench.contenders import TARGETS, Contender, Kind
from core.measure.bench.growth import find_growth
from core.measure.trial import OUTCOMES, TrialResult, samples_per_s, step_seconds

# By column's key; None: not known.
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One contender's turns.

    Attributes:
        contender: Which.
        turns: Those that were measured.
        failure: Why there are no more; None: none failed.
    """

    contender: Contender
    turns: tuple[TrialResult, ...] = ()
    failure: TrialResult | None = None

    @property
    def speeds(self) -> list[float]:
        """Samples a second of all devices together, in each turn."""
        return [samples_per_s(self.contender.run, turn.steps_s, turn.round_s) for turn in self.turns]

    @property
    def steps_s(self) -> list[float]:
        return [step_seconds(self.contender.run, turn.steps_s, turn.round_s) for turn in self.turns]


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark, whole or as far as it came.

    Attributes:
        kind: What is measured.
        run: On the most devices.
        threads: Processor threads of each device.
        measured: One entry for each contender, in their order.
        turns: How many each was to have.
        seconds: How long a turn is timed.
        is_stopped: It was ended early.
    """

    kind: Kind
    run: ResolvedRun
    threads: int
    measured: tuple[Measured, ...]
    turns: int
    seconds: float
    is_stopped: bool = False

    @property
    def has_figures(self) -> bool:
        return any(one.turns for one in self.measured)

    @property
    def has_failures(self) -> bool:
        """Whether a contender has failed, or cannot fit."""
        return any(one.failure is not None for one in self.measured)

    @property
    def base(self) -> Measured | None:
        """The one on the fewest devices, with which others are compared; None: it was not measured."""
        return self.measured[0] if self.measured and self.measured[0].turns else None


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of turns.

    Attributes:
        median: The middle one.
        low, high: The quartiles; half of all turns lie between them.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if not values:
            return None
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratios(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """Each turn's value ÷ that of the base in the same turn, so that what slows the machine down slows both."""
    return [value / beside for value, beside in zip(values, base, strict=False) if beside]


def rows_of(bench: Bench) -> list[Row]:
    return [{"kind": bench.kind.value, **row} for row in _ROWS[bench.kind](bench)]


def _scaling_rows(bench: Bench) -> list[Row]:
    return [_scaling_row(bench, one) for one in bench.measured]


def _scaling_row(bench: Bench, one: Measured) -> Row:
    base = bench.base
    speed, step = Spread.of(one.speeds), Spread.of(one.steps_s)
    speedup = efficiency = None
    if base is not None:
        beside = ratios(one.speeds, base.speeds)
        more = one.contender.devices / base.contender.devices
        speedup, efficiency = Spread.of(beside), Spread.of([value / more for value in beside])
    is_base = one is base
    target = None if is_base else TARGETS[bench.kind]
    return {
        **_settings(one),
        "exchange": one.turns[0].exchange or None if one.turns else None,
        **_of("samples_per_s", speed),
        **_of("step_s", step),
        **_of("speedup", speedup),
        **_of("efficiency", efficiency),
        "target": target,
        "verdict": _reached(efficiency, target),
    }


def _reached(efficiency: Spread | None, target: float | None) -> str | None:
    if efficiency is None or target is None:
        return None
    if efficiency.low >= target:
        return "reached"
    return "missed" if efficiency.high < target else "unclear"


def _sum_rows(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for one in bench.measured:
        times: dict[tuple[int, str], list[float]] = {}
        models = set()
        for turn in one.turns:
            for ranks in zip(*(answer.sums for answer in turn.answers), strict=False):
                first = ranks[0]
                # A sum is over when the last rank has it.
                found = [max(each) for each in zip(*(rank.times_s for rank in ranks), strict=False)]
                times.setdefault((first.size_bytes, first.transport), []).extend(found)
                if first.is_model:
                    models.add(first.size_bytes)
        for (size, transport), found in sorted(times.items()):
            rows.append(_sum_row(one, size, transport, found, is_model=size in models))
        if not times:
            rows.append({"devices": one.contender.devices, "outcome": _outcome(one)})
    return rows


def _sum_row(one: Measured, size: int, transport: str, times: list[float], *, is_model: bool) -> Row:
    spread = Spread.of(times)
    devices = one.contender.devices
    per_s = None if spread is None else size / spread.median
    return {
        "devices": devices,
        "transport": transport,
        "size_bytes": size,
        "is_model": is_model,
        **_of("time_s", spread),
        "mb_per_s": None if per_s is None else per_s / 1e6,
        # As nccl-tests counts it: what each device sends, which does not fall with their number.
        "bus_mb_per_s": None if per_s is None else per_s / 1e6 * 2 * (devices - 1) / devices,
        "sums": len(times),
        "outcome": _outcome(one),
    }


def _memory_rows(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for one in bench.measured:
        if not one.turns:
            rows.append(_settings(one))
        for rank, answer in enumerate(one.turns[-1].answers if one.turns else ()):
            growth = find_growth(answer.memory_bytes)
            rows.append(
                {
                    **_settings(one),
                    "rank": rank,
                    "peak_bytes": max(turn.answers[rank].peak_bytes for turn in one.turns),
                    "steps": len(answer.memory_bytes),
                    "bytes_per_step": None if growth is None else growth.bytes_per_step,
                    "bytes_per_step_error": None if growth is None else growth.error,
                    "verdict": None if growth is None else growth.verdict,
                }
            )
    return rows


def _accumulation_rows(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for one in bench.measured:
        beside = [other for other in bench.measured if other.contender.devices == one.contender.devices and other.turns]
        fastest = max(beside, key=lambda other: statistics.median(other.speeds), default=None)
        slower = Spread.of(ratios(one.steps_s, fastest.steps_s)) if fastest is not None else None
        rows.append(
            {
                **_settings(one),
                **_of("samples_per_s", Spread.of(one.speeds)),
                **_of("step_s", Spread.of(one.steps_s)),
                **_of("step_ratio", slower),
            }
        )
    return rows


def _settings(one: Measured) -> Row:
    run = one.contender.run
    return {
        "devices": run.world_size,
        "mode": run.mode.value,
        "micro_batch": run.batch.micro,
        "accumulation": run.batch.accumulation,
        "global_batch": run.batch.global_,
        "turns": len(one.turns),
        "outcome": _outcome(one),
    }


def _outcome(one: Measured) -> str:
    if one.failure is not None:
        return OUTCOMES[one.failure.outcome]
    return "measured" if one.turns else "not measured"


def _of(name: str, spread: Spread | None) -> Row:
    if spread is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: spread.median, f"{name}_low": spread.low, f"{name}_high": spread.high}


_ROWS: Final[dict[Kind, Callable[[Bench], list[Row]]]] = {
    Kind.WEAK: _scaling_rows,
    Kind.STRONG: _scaling_rows,
    Kind.COMM: _sum_rows,
    Kind.MEMORY: _memory_rows,
    Kind.ACCUMULATION: _accumulation_rows,
}
