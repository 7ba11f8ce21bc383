"""Report of a benchmark: the rows of its table as numbers, its cells and its sentences as text. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from core.config.mode import mode_label
from core.errors import full_stop
from core.formatting import UNKNOWN, listed, number, rate, short_duration
from core.launch.resolved import ResolvedRun
from core.measure.bench.contenders import TARGETS, Kind
from core.measure.trial import OUTCOMES, TrialResult, samples_per_s, step_seconds, transport_title

# By name; None: not known.
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """The turns of one contender that were measured, and the failure that ended them."""

    run: ResolvedRun
    turns: tuple[TrialResult, ...] = ()
    failure: TrialResult | None = None

    @property
    def speeds(self) -> list[float]:
        """Samples a second of all devices together, in each turn."""
        return [samples_per_s(self.run, turn.steps_s, turn.round_s) for turn in self.turns]

    @property
    def steps_s(self) -> list[float]:
        return [step_seconds(self.run, turn.steps_s, turn.round_s) for turn in self.turns]

    @property
    def outcome(self) -> str:
        if self.failure is not None:
            return OUTCOMES[self.failure.outcome]
        return "measured" if self.turns else "not measured"


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark, whole or as far as it came.

    Attributes:
        run: On the most devices.
        measured: One entry for each contender, the one on the fewest devices first.
        is_stopped: It was ended early.
    """

    kind: Kind
    run: ResolvedRun
    measured: tuple[Measured, ...]
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles of the values of turns."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if len(values) < 2:
            return cls(values[0], values[0], values[0]) if values else None
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratios(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """Divide each turn's value by the base's in the same turn: a busy minute slows both."""
    return [value / beside for value, beside in zip(values, base, strict=False) if beside]


def rows_of(bench: Bench) -> list[Row]:
    """Return the numbers of the table, a row for each contender or, of sums, for each size and transport."""
    rows = _sum_rows(bench) if bench.kind == Kind.COMM else [_scaling_row(bench, one) for one in bench.measured]
    return [{"kind": bench.kind.value, **row} for row in rows]


def _scaling_row(bench: Bench, one: Measured) -> Row:
    run, base = one.run, bench.measured[0]
    beside = ratios(one.speeds, base.speeds)
    more = run.world_size / base.run.world_size
    efficiency = Spread.of([value / more for value in beside])
    target = None if one is base else TARGETS[bench.kind]
    return {
        "devices": run.world_size,
        "mode": run.mode.value,
        "micro_batch": run.batch.micro,
        "accumulation": run.batch.accumulation,
        "global_batch": run.batch.global_,
        "turns": len(one.turns),
        "outcome": one.outcome,
        "exchange": one.turns[0].exchange or None if one.turns else None,
        **_of("samples_per_s", Spread.of(one.speeds)),
        **_of("step_s", Spread.of(one.steps_s)),
        **_of("speedup", Spread.of(beside)),
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
            rows.append({"devices": one.run.world_size, "outcome": one.outcome})
    return rows


def _sum_row(one: Measured, size: int, transport: str, times: list[float], *, is_model: bool) -> Row:
    spread, devices = Spread.of(times), one.run.world_size
    mb_per_s = None if spread is None else size / spread.median / 1e6
    return {
        "devices": devices,
        "transport": transport,
        "size_bytes": size,
        "is_model": is_model,
        **_of("time_s", spread),
        "mb_per_s": mb_per_s,
        # As nccl-tests counts it: what each device sends, which does not fall with their number.
        "bus_mb_per_s": None if mb_per_s is None else mb_per_s * 2 * (devices - 1) / devices,
        "sums": len(times),
        "outcome": one.outcome,
    }


def _of(name: str, spread: Spread | None) -> Row:
    if spread is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: spread.median, f"{name}_low": spread.low, f"{name}_high": spread.high}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: its title, and the cell of a row."""

    title: str
    text: Callable[[Row], str]


def columns_of(kind: Kind) -> tuple[Column, ...]:
    return _SUMS if kind == Kind.COMM else _SCALING


def spread_text(value: float, low: float, high: float, text: Callable[[float], str]) -> str:
    """Format median and quartiles with one unit: "27.8 ms (24.7 to 30.9)"; the median alone where they are alike."""
    middle, *ends = (text(each) for each in (value, low, high))
    if ends == [middle, middle]:
        return middle
    unit = middle.partition(" ")[2]
    if unit and all(end.endswith(f" {unit}") for end in ends):
        ends = [end.removesuffix(f" {unit}") for end in ends]
    return f"{middle} ({ends[0]} to {ends[1]})"


def _spread(key: str, text: Callable[[float], str]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(key)
        return UNKNOWN if value is None else spread_text(value, row[f"{key}_low"], row[f"{key}_high"], text)

    return cell


def _plain(key: str) -> Callable[[Row], str]:
    return lambda row: UNKNOWN if row.get(key) is None else f"{row[key]:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _speed_text(value: float) -> str:
    return rate(value, "samples/s").removesuffix(" samples/s")


def _size_text(size: int) -> str:
    """Format a tensor's size: "64 KiB", "3.4 MiB"."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{number(size / step) if size % step else size // step} {unit}"
    return f"{size} bytes"


def _sum_size(row: Row) -> str:
    if row.get("size_bytes") is None:
        return UNKNOWN
    return _size_text(row["size_bytes"]) + (" (model)" if row["is_model"] else "")


_DEVICES: Final = Column("Devices", _plain("devices"))
_SCALING: Final = (
    _DEVICES,
    Column("Mode", lambda row: mode_label(row["mode"], UNKNOWN)),
    Column("Micro-batch", _plain("micro_batch")),
    Column("Accumulation", _plain("accumulation")),
    Column("Global batch", _plain("global_batch")),
    Column("Step", _spread("step_s", short_duration)),
    Column("Samples/s", _spread("samples_per_s", _speed_text)),
    Column("Speed-up", lambda row: UNKNOWN if row["speedup"] is None else f"{row['speedup']:.2f} ×"),
    Column("Efficiency", _spread("efficiency", _percent)),
    Column("Result", lambda row: str(row["verdict"] or row["outcome"])),
)
_SUMS: Final = (
    _DEVICES,
    Column("Transport", lambda row: transport_title(row.get("transport") or "")),
    Column("Size", _sum_size),
    Column("Time", _spread("time_s", short_duration)),
    Column("MB/s", lambda row: number(row.get("mb_per_s"))),
    Column("Bus MB/s", lambda row: number(row.get("bus_mb_per_s"))),
    Column("Sums", _plain("sums")),
    Column("Result", lambda row: str(row["outcome"])),
)


def heading(bench: Bench) -> str:
    """The recipe, mode and numbers of devices, in one line."""
    run = bench.run
    counts = sorted({one.run.world_size for one in bench.measured})
    mode = "DDP" if bench.kind == Kind.COMM else run.mode.label
    devices = f"{listed([str(count) for count in counts])} device{'' if counts == [1] else 's'}"
    return f"{run.recipe.title}, {mode}, on {devices}"


def sentences(bench: Bench) -> list[str]:
    """The conclusions from the table, the most important first."""
    rows = rows_of(bench)
    found = _sum_sentences(rows) if bench.kind == Kind.COMM else _scaling_sentences(rows)
    for one in bench.measured:
        if one.failure is not None:
            word = OUTCOMES[one.failure.outcome]
            found.append(f"{contender_name(one.run)}: {word}. {full_stop(one.failure.cause)}")
    if bench.is_stopped:
        found.append("Stopped early: the figures are from the turns that were over.")
    return found


def contender_name(run: ResolvedRun) -> str:
    return f"{_devices(run.world_size)}, micro-batch {run.batch.micro} × {run.batch.accumulation}"


def _scaling_sentences(rows: Sequence[Row]) -> list[str]:
    verdicts = {"reached": "reached", "missed": "missed", "unclear": "within the spread"}
    efficiency = _spread("efficiency", _percent)
    return [
        f"{_devices(row['devices'])}: {efficiency(row)} of the ideal speed; "
        f"the target of {_percent(row['target'])} is {verdicts[row['verdict']]}."
        for row in rows
        if row["verdict"] is not None
    ]


def _sum_sentences(rows: Sequence[Row]) -> list[str]:
    found = []
    for devices in sorted({row["devices"] for row in rows}):
        own = [row for row in rows if row["devices"] == devices and row.get("is_model")]
        if own:
            each = "; ".join(
                f"{transport_title(row['transport'])} {short_duration(row['time_s'])}"
                for row in sorted(own, key=lambda row: float(row["time_s"]))
            )
            size = _size_text(own[0]["size_bytes"])
            found.append(f"The model's gradients ({size}) on {devices} devices: {each}.")
    return found


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"
