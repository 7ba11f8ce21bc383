"""Texts of benchmarks: the kinds, the growing table and the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import RankdeckError
from core.formatting import listed
from core.launch.resolved import ResolvedRun
from core.measure.bench.charts import BenchChart, charts_of
from core.measure.bench.contenders import TITLES, Kind, find_contenders
from core.measure.bench.rows import Bench
from core.measure.bench.summary import NO_PICTURES, heading, sentences
from core.measure.bench.table import table_of

TRAINING: Final = "A run is training. Both would slow each other down. Measure when it has ended."
UNFIXED: Final = "New run has settings that cannot be used yet. Fix the marked ones first."


@dataclass(frozen=True, slots=True)
class BenchNews:
    """The progress of a benchmark.

    Attributes:
        columns: Titles, whether they are aligned to the left, and a cell as wide as most will be.
        cells: Of each row.
        charts: In their order.
        text: What was found; empty while it is being measured.
    """

    columns: tuple[tuple[str, bool, str], ...]
    cells: tuple[tuple[str, ...], ...]
    charts: tuple[BenchChart, ...]
    text: str = ""


def bench_news(bench: Bench, *, is_over: bool = False, no_pictures: str = "") -> BenchNews:
    """The texts and rows of a benchmark.

    Args:
        bench: As far as it came.
        is_over: It is at its end.
        no_pictures: Why there are no pictures, as a sentence; empty: there are.
    """
    table = table_of(bench)
    found = sentences(bench) if is_over else []
    if no_pictures:
        found.append(f"{NO_PICTURES}: {no_pictures}")
    columns = tuple((column.title, column.is_text, column.usual) for column in table.shown)
    spread = [] if bench.kind == Kind.MEMORY else [f"{heading(bench)}: medians, with quartiles in brackets."]
    text = "\n".join([*found, *spread]) if is_over else ""
    return BenchNews(columns, tuple(tuple(row) for row in table.cells), tuple(charts_of(bench)), text)


def why_not_measured(kind: Kind, run: ResolvedRun | None, *, is_training: bool) -> str:
    """Why New run's settings cannot be measured, as sentences; empty where they can.

    Args:
        kind: The benchmark.
        run: The draft's; None where a setting is wrong.
        is_training: A run trains on this machine.
    """
    if run is None:
        return UNFIXED
    try:
        find_contenders(kind, run)
    except RankdeckError as error:
        return f"{error.cause} {error.window_step}"
    return TRAINING if is_training else ""


def what_is_measured(kind: Kind, run: ResolvedRun) -> str:
    """What will be measured, for a run that can be."""
    counts = sorted({contender.devices for contender in find_contenders(kind, run)})
    devices = f"{listed([str(count) for count in counts])} device{'' if counts == [1] else 's'}"
    mode = "" if kind == Kind.COMM else f" in {run.mode.label}"
    return f"{run.recipe.title}{mode} on {devices}, as set in New run. Nothing is trained or saved."


def folder_name(kind: Kind, recipe: str, stamp: str) -> str:
    """The folder of results, below the runs: "2026-11-26-120500-weak-minigpt"."""
    return f"{stamp}-{kind.value}-{recipe}"


def kind_titles() -> list[tuple[str, str]]:
    return [(kind.value, TITLES[kind]) for kind in Kind]
