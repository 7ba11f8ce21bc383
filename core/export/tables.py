"""A run's numbers as CSV: a table each for steps, evaluations, devices and samples, streamed.

Columns are named as in `metrics.jsonl`. The file is read twice, once for the columns and once for the rows, so that
memory does not grow with the run. Where a number was NaN or infinite stands ``nan``; what a line did not have is
empty; lists and objects are JSON.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from core.export.lines import Line, MetricsLines, Progress

TABLES: Final[Mapping[str, str]] = {"step": "steps", "eval": "evals", "device": "devices", "sample": "samples"}
"""Kinds of lines and the names of their tables."""
_FIRST: Final = ("ts", "attempt", "rank", "step")
_LEFT_OUT: Final = ("event", "nonfinite")


def write_tables(lines: MetricsLines, folder: Path, progress: Progress) -> dict[str, int]:
    """Fills an existing folder with a CSV file for each kind of line that occurs; returns rows by the file's name.

    Raises:
        OSError: The disk refuses.
        RankdeckError: The metrics cannot be read, or it was cancelled.
    """
    columns = _columns(lines, lambda done: progress(done / 2))
    rows = dict.fromkeys((f"{TABLES[kind]}.csv" for kind in TABLES if kind in columns), 0)
    with ExitStack() as stack:
        writers = {}
        for kind, names in columns.items():
            file = stack.enter_context((folder / f"{TABLES[kind]}.csv").open("w", encoding="utf-8", newline=""))
            writers[kind] = csv.writer(file, lineterminator="\n")
            writers[kind].writerow(names)
        for line in lines.read(lambda done: progress(0.5 + done / 2)):
            kind = line["event"]
            if kind in writers:
                writers[kind].writerow(_cells(line, columns[kind]))
                rows[f"{TABLES[kind]}.csv"] += 1
    return rows


def _columns(lines: MetricsLines, progress: Progress) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for line in lines.read(progress):
        if line["event"] in TABLES:
            known = found.setdefault(line["event"], {})
            if not line.keys() <= known.keys():
                known.update(dict.fromkeys(line))
    order: Callable[[str], int] = lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)  # noqa: E731
    return {kind: sorted((name for name in names if name not in _LEFT_OUT), key=order) for kind, names in found.items()}


def _cells(line: Line, names: list[str]) -> list[Any]:
    nonfinite = line.get("nonfinite", ())
    return [_cell(line.get(name)) if name not in nonfinite else "nan" for name in names]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
