"""Charts of a benchmark, as values: the window draws them, and a process of `app` makes pictures of them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Final

from core.measure.bench.contenders import TARGETS, TITLES, Kind
from core.measure.bench.rows import Bench, Row, rows_of
from core.measure.bench.table import percent, size_text
from core.measure.trial import transport_title
from core.records import Limits, Text

Number = Annotated[float, Limits(-1e18, 1e18)]
# Of a curve over steps: more than a picture can show apart.
MOST_POINTS: Final = 400


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart.

    Attributes:
        name: In the legend.
        x, y: Its points.
        low, high: The spread at each; empty: none is drawn.
        has_dots: Points are marked.
    """

    name: Text
    x: list[Number]
    y: list[Number]
    low: list[Number] = field(default_factory=list)
    high: list[Number] = field(default_factory=list)
    has_dots: bool = True


@dataclass(frozen=True, slots=True)
class BenchChart:
    """One chart.

    Attributes:
        name: Of its files.
        title, x_label, y_label: Its texts.
        curves: In the order of their colours.
        x_log, y_log: Logarithmic axes; values are given as they are.
        x_ticks: Where the x axis has numbers, and which; empty: wherever they fit. All of them are in sight.
        target: A line at this height; None: there is none.
        target_label: What it is.
    """

    name: Text
    title: Text
    x_label: Text
    y_label: Text
    curves: list[Curve]
    x_log: bool = False
    y_log: bool = False
    x_ticks: dict[str, Number] = field(default_factory=dict)
    target: Number | None = None
    target_label: Text = ""


def charts_of(bench: Bench) -> list[BenchChart]:
    """The charts of what was measured so far; those without a point are left out."""
    rows = rows_of(bench)
    if bench.kind == Kind.COMM:
        made = _sums(rows)
    elif bench.kind == Kind.MEMORY:
        made = [_peaks(rows), _over_time(bench)]
    elif bench.kind == Kind.ACCUMULATION:
        made = [_accumulation(rows)]
    else:
        made = [_scaling(bench.kind, rows)]
    return [chart for chart in made if chart.curves]


def _scaling(kind: Kind, rows: list[Row]) -> BenchChart:
    known = [row for row in rows if row["efficiency"] is not None]
    target = TARGETS[kind]
    return BenchChart(
        f"{kind.value}-efficiency",
        TITLES[kind],
        "Devices",
        "Efficiency, %",
        _curves([("Efficiency", known)], "devices", "efficiency", 100),
        x_ticks={str(row["devices"]): row["devices"] for row in rows},
        target=100 * target,
        target_label=f"target {percent(target)}",
    )


def _sums(rows: list[Row]) -> list[BenchChart]:
    known = [row for row in rows if row.get("size_bytes")]
    several = len({row["devices"] for row in known}) > 1
    groups: dict[str, list[Row]] = {}
    for row in known:
        name = transport_title(row["transport"]) + (f", {row['devices']} devices" if several else "")
        groups.setdefault(name, []).append(row)
    # The model's own size lies between two others, and its number would cover theirs.
    ticks = {size_text(row["size_bytes"]): row["size_bytes"] for row in known if not row["is_model"]}
    times = _curves(list(groups.items()), "size_bytes", "time_s", 1e3)
    speeds = _curves(list(groups.items()), "size_bytes", "mb_per_s", 1)
    return [
        BenchChart("comm-time", "All-reduce time", "Size", "Time, ms", times, True, True, ticks),
        BenchChart("comm-bandwidth", "All-reduce bandwidth", "Size", "Bandwidth, MB/s", speeds, True, True, ticks),
    ]


def _peaks(rows: list[Row]) -> BenchChart:
    known = [row for row in rows if row.get("peak_bytes")]
    largest: dict[int, Row] = {}
    for row in known:
        if row["devices"] not in largest or row["peak_bytes"] > largest[row["devices"]]["peak_bytes"]:
            largest[row["devices"]] = row
    return BenchChart(
        "memory-peak",
        "Peak memory of the largest device",
        "Devices",
        "Peak, MiB",
        _curves([("Peak", list(largest.values()))], "devices", "peak_bytes", 2**-20),
        x_ticks={str(devices): devices for devices in largest},
    )


def _over_time(bench: Bench) -> BenchChart:
    """Of each number of devices the one that holds the most at the end."""
    curves = []
    for one in bench.measured:
        answers = [answer for turn in one.turns[-1:] for answer in turn.answers if answer.memory_bytes]
        if answers:
            held = max(answers, key=lambda answer: answer.memory_bytes[-1]).memory_bytes
            every = max(1, -(-len(held) // MOST_POINTS))
            x = [float(step) for step in range(1, len(held) + 1, every)]
            y = [value / 2**20 for value in held[::every]]
            curves.append(Curve(_on_devices(one.contender.devices), x, y, has_dots=False))
    return BenchChart("memory-steps", "Memory of the largest device after each step", "Step", "Memory, MiB", curves)


def _accumulation(rows: list[Row]) -> BenchChart:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_on_devices(row["devices"]), []).append(row)
    ticks = {str(row["micro_batch"]): row["micro_batch"] for row in rows}
    return BenchChart(
        "accumulation-speed",
        "Speed by micro-batch, same global batch",
        "Micro-batch",
        "Samples a second",
        _curves(list(groups.items()), "micro_batch", "samples_per_s", 1),
        x_log=True,
        x_ticks=ticks,
    )


def _curves(groups: list[tuple[str, list[Row]]], x: str, y: str, factor: float) -> list[Curve]:
    made = []
    for name, rows in groups:
        known = [row for row in rows if row.get(y) is not None and math.isfinite(row[y])]
        values = {
            end: [factor * row[f"{y}{end}"] for row in known] for end in ("", "_low", "_high") if _has(known, y, end)
        }
        if known:
            xs = [float(row[x]) for row in known]
            made.append(Curve(name, xs, values[""], values.get("_low", []), values.get("_high", [])))
    return made


def _has(rows: list[Row], y: str, end: str) -> bool:
    return all(row.get(f"{y}{end}") is not None for row in rows)


def _on_devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"
