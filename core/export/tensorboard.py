"""A run as a folder that TensorBoard opens: a curve's owner (a rank, a device) is one of its "runs".

Steps and evaluations keep their step. Devices have none: theirs is whole seconds since the run's first line. Where a
resumed attempt trains steps again, what was there before is marked as replaced, so the curve shown is the one that
led to the weights.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from core.export.event_file import EventFile
from core.export.lines import Line, MetricsLines, Progress

_NO_CURVE: Final = frozenset(("ts", "event", "rank", "attempt", "step", "nonfinite", "index"))
_MAX_OWNERS: Final = 400
"""Files open at once; a machine has some dozens of ranks and devices, Windows' C library allows 512."""


def write_event_files(lines: MetricsLines, folder: Path, progress: Progress) -> dict[str, int]:
    """Fills an existing folder with a subfolder and an event file for each rank and device.

    Returns:
        Events by the subfolder's name.

    Raises:
        As `core.export.tables.write_tables`.
    """
    with ExitStack() as stack:
        writer = _Writer(folder, stack)
        for line in lines.read(progress):
            writer.take(line)
    return writer.events


class _Writer:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._files: dict[str, EventFile] = {}
        self._started: float | None = None
        self.events: dict[str, int] = {}

    def take(self, line: Line) -> None:
        ts = _float(line.get("ts")) or 0.0
        if self._started is None:
            self._started = ts
        kind, step, rank = line["event"], line.get("step"), line.get("rank", 0)
        if kind in ("launch", "resumed") and isinstance(line.get("resumed_from"), dict):
            self._restart(ts, line["resumed_from"])
        elif kind == "device":
            owner = f"device-{line.get('uuid') or 'host'}"
            self._scalars(owner, ts, max(0, int(ts - self._started)), line)
        elif not isinstance(step, int) or isinstance(step, bool) or step < 0:
            return
        elif kind in ("step", "eval"):
            self._scalars(f"rank{rank}", ts, step, line)
        elif kind == "sample":
            text = f"{line.get('prompt') or ''}{line.get('text') or ''}"
            if file := self._file(f"rank{rank}"):
                indented = "\n".join(f"    {part}" for part in text.split("\n"))
                file.text(ts, step, "sample", indented)  # four spaces: Markdown leaves it as it is

    def _restart(self, ts: float, resumed_from: dict[str, Any]) -> None:
        for rank, step in resumed_from.items():
            if isinstance(step, int) and f"rank{rank}" in self._files:
                self._files[f"rank{rank}"].restart(ts, step + 1)

    def _scalars(self, owner: str, ts: float, step: int, line: Line) -> None:
        values = {name: value for name in line if name not in _NO_CURVE and (value := _float(line[name])) is not None}
        values |= dict.fromkeys((str(name) for name in line.get("nonfinite") or ()), float("nan"))
        if values and (file := self._file(owner)):
            file.scalars(ts, step, values)

    def _file(self, owner: str) -> EventFile | None:
        """The owner's file, opened when it is needed first; None beyond `_MAX_OWNERS`."""
        name = re.sub(r"[^\w.-]+", "-", owner, flags=re.ASCII)[:80].rstrip(".")
        if name not in self._files:
            if len(self._files) >= _MAX_OWNERS:
                return None
            path = self._folder / name / f"events.out.tfevents.{int(self._started or 0):010d}.rankdeck"
            path.parent.mkdir(parents=True)
            self._files[name] = EventFile(self._stack.enter_context(path.open("wb")), self._started or 0.0)
            self.events[name] = 0
        self.events[name] += 1
        return self._files[name]


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
