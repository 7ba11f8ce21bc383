"""How well printed output is read, as numbers: precision and recall of each program's points.

``python -m tests.unit.workers.script.scores`` prints the table. A point is right where the program really had that
value at that step; only the charts that carry what is learned count (`CHARTS`), so that a false one counts against the
reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from workers.script.printed.steps import Point, PrintedMetrics

FOLDER: Final = Path(__file__).parent / "printed"
CHARTS: Final = ("loss", "val_loss", "accuracy", "val_accuracy", "reward", "val_reward", "perplexity")


@dataclass(frozen=True)
class Program:
    """What a program printed, and what was true.

    Attributes:
        text: Its bytes.
        charts: Chart → step → value. Charts that are not named here are not judged, but for `loss` and `val_loss`.
        quiet: Offsets in `text` before which the program was quiet for a moment.
        epochs: Step → epoch.
        also: Values that are as right as those in `charts` (a mean printed beside a step's own loss).
    """

    text: bytes
    charts: Mapping[str, Mapping[int, float]]
    quiet: tuple[int, ...] = ()
    epochs: Mapping[int, float] = field(default_factory=dict)
    also: Mapping[str, Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """Counts of points; `wrong` describes some of those that are not true."""

    expected: int
    found: int
    right: int
    read: int
    wrong: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        return self.right / self.read if self.read else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.expected if self.expected else 1.0


def programs() -> dict[str, Program]:
    from tests.unit.workers.script.styles import STYLES

    recorded = {path.stem: _recorded(path) for path in sorted(FOLDER.glob("*.json"))}
    return {**recorded, **{name: make() for name, make in STYLES.items()}}


def _recorded(path: Path) -> Program:
    document = json.loads(path.read_text(encoding="utf-8"))
    charts = {
        chart: {int(step): float(value) for step, value in points} for chart, points in document["charts"].items()
    }
    epochs = {int(step): float(epoch) for step, epoch in document.get("epochs", {}).items()}
    return Program(path.with_suffix(".log").read_bytes(), charts, tuple(document.get("quiet", ())), epochs)


def read(program: Program) -> list[Point]:
    """What the reader makes of it, with the moments of quiet that there were."""
    printed, points, before = PrintedMetrics(), list[Point](), 0
    for offset in program.quiet:
        points += printed.feed(program.text[before:offset])
        points += printed.flush()
        before = offset
    return [*points, *printed.feed(program.text[before:]), *printed.finish()]


def score(program: Program) -> Score:
    judged = [chart for chart in CHARTS if chart in program.charts or chart in ("loss", "val_loss")]
    expected = {(chart, step) for chart in judged for step in program.charts.get(chart, {})}
    found, wrong, right, count = set[tuple[str, int]](), list[str](), 0, 0
    for point in read(program):
        for chart in judged:
            if chart not in point.values:
                continue
            count += 1
            value = point.values[chart]
            if _is_true(program, chart, point):
                right += 1
                found.add((chart, point.step))
            else:
                wrong.append(f"{chart} {value:g} at {point.step} (epoch {point.epoch})")
    return Score(len(expected), len(found & expected), right, count, tuple(wrong[:5]))


def _is_true(program: Program, chart: str, point: Point) -> bool:
    value, epoch = point.values[chart], program.epochs.get(point.step)
    if point.epoch is not None and epoch is not None and not math.isclose(point.epoch, epoch, abs_tol=1e-3):
        return False
    truths = (program.charts.get(chart, {}).get(point.step), program.also.get(chart, {}).get(point.step))
    return any(true is not None and math.isclose(value, true, rel_tol=6e-3, abs_tol=6e-4) for true in truths)


def table(scores: Mapping[str, Score]) -> str:
    lines = [f"{'program':28} {'true':>5} {'read':>5} {'right':>5}  precision  recall"]
    for name, one in scores.items():
        counts = f"{one.expected:5} {one.read:5} {one.right:5}"
        lines.append(f"{name:28} {counts}  {one.precision:9.1%} {one.recall:7.1%}  {'; '.join(one.wrong[:2])}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table({name: score(program) for name, program in programs().items()}))
