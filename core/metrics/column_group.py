"""One group of columns on disk: a file of float64 for each name."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from core.held_files import BRIEFLY_S, open_binary
from core.metrics.column_index import VALUE_BYTES, GroupIndex, read_rows, safe_stem

NOT_COLUMNS: Final = frozenset(("event", "rank", "attempt"))
# A script that invents a new name for every step must not fill the disk with files.
COLUMNS_MAX: Final = 1000
EVAL_GROUP: Final = "eval"

_NAN: Final = math.nan
_NULL: Final = type(None)
_NUMBERS: Final = frozenset((int, float))
_SLICE_ROWS: Final = 1 << 17


def rank_group(rank: object) -> str:
    return f"rank{rank}"


def group_for(line: Mapping[str, Any]) -> str | None:
    event = line.get("event")
    if event == "step":
        return rank_group(line.get("rank", 0))
    if event == "device":
        return f"device/{line.get('uuid') or 'host'}"
    return eval_group(line.get("rank")) if event == EVAL_GROUP else None


def eval_group(rank: object) -> str:
    """The group of a rank's evaluations. Rank 0 evaluates for all, unless ranks train independently."""
    return f"{EVAL_GROUP}/rank{rank}" if isinstance(rank, int) and rank > 0 else EVAL_GROUP


def is_eval_group(name: str) -> bool:
    return name == EVAL_GROUP or name.startswith(f"{EVAL_GROUP}/")


def resumed_steps(line: Mapping[str, Any]) -> dict[str, int]:
    """The step of each rank after which a resumed attempt trains again; empty for other lines."""
    steps = line.get("resumed_from")
    if line.get("event") not in ("launch", "resumed") or not isinstance(steps, dict):
        return {}
    return {str(rank): step for rank, step in steps.items() if isinstance(step, int)}


def column_values(values: Sequence[Any]) -> array[float] | None:
    """The values of lines under one name, for a column; None where none of them is a number.

    Null stands for NaN and infinities, so nulls alone are a column too.
    """
    kinds = set(map(type, values))
    if not kinds & _NUMBERS and kinds != {_NULL}:
        return None
    return array("d", values if kinds <= _NUMBERS else map(_number, values))


class ColumnGroup:
    """Appends rows to a group of columns, and takes rows back.

    Files are written in place at the place of their row, so that a kill at any moment leaves every row that the
    index counts as it was, and a reader on Windows that has a file open or mapped does not block the writer.
    """

    def __init__(self, folder: Path, index: GroupIndex) -> None:
        self.name = index.name
        self.rows = index.rows
        self._folder_name = index.folder
        self._folder = folder / index.folder
        # No parents: a run that was removed must not come back with its first sample.
        self._folder.mkdir(exist_ok=True)
        self._stems = {name: index.files.get(name, name) for name in index.names}
        # Lines to be written by `write`; a caller appends to this list, the cheapest way of all.
        self.pending: list[dict[str, Any]] = []

    def index(self) -> GroupIndex:
        files = {name: stem for name, stem in self._stems.items() if stem != name}
        return GroupIndex(self.name, self._folder_name, self.rows, tuple(self._stems), files)

    def write(self) -> None:
        """Write what is pending; raises OSError, and then all of it is still pending and can be written again."""
        if not self.pending:
            return
        lines = self.pending[:]
        shapes = dict.fromkeys(map(tuple, lines))
        names = dict.fromkeys(name for shape in shapes for name in shape if name not in NOT_COLUMNS)
        for name in names:
            # Lines of one shape are the rule: itemgetter is then twice as fast as asking each line what it has.
            values: list[Any] = (
                list(map(itemgetter(name), lines)) if len(shapes) == 1 else [line.get(name) for line in lines]
            )
            column = column_values(values)
            if name not in self._stems and (column is None or not self._make_column(name)):
                continue
            self._write_column(name, _gaps(len(lines)) if column is None else column)
        for name in self._stems.keys() - names.keys():
            self._write_column(name, _gaps(len(lines)))
        self.rows += len(lines)
        self.pending.clear()  # the list itself stays: callers hold it

    def truncate_after(self, step: float) -> None:
        """Take back every row from the first one past a step on; raises OSError.

        The files keep their length (Windows does not cut a file that is mapped): rows past the index do not count.
        """
        self.write()
        self.rows = self._first_row_past(step)

    def _first_row_past(self, step: float) -> int:
        if "step" not in self._stems:
            return self.rows
        for start in range(0, self.rows, _SLICE_ROWS):
            values = read_rows(self._path("step"), start, min(_SLICE_ROWS, self.rows - start))
            row = next((row for row, value in enumerate(values, start) if value > step), None)
            if row is not None:
                return row
        return self.rows

    def _make_column(self, name: str) -> bool:
        if len(self._stems) >= COLUMNS_MAX:
            return False
        stem = safe_stem(name, {stem.lower() for stem in self._stems.values()})
        with open_binary(self._folder / f"{stem}.f64", "wb", timeout_s=BRIEFLY_S) as file:
            for start in range(0, self.rows, _SLICE_ROWS):
                file.write(_gaps(min(_SLICE_ROWS, self.rows - start)).tobytes())
        self._stems[name] = stem
        return True

    def _write_column(self, name: str, values: array[float]) -> None:
        _write_at(self._path(name), self.rows * VALUE_BYTES, values)

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._stems[name]}.f64"


def _write_at(path: Path, offset: int, values: array[float]) -> None:
    with open_binary(path, "r+b", timeout_s=BRIEFLY_S) as file:
        file.seek(offset)
        file.write(values.tobytes())


def _gaps(rows: int) -> array[float]:
    return array("d", [_NAN]) * rows


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NAN
    try:
        return float(value)
    except OverflowError:  # a whole number beyond 1e308
        return math.inf if value > 0 else -math.inf
