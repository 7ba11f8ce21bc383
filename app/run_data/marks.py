"""Marks of a run: where it was resumed, and where it saved a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.config.mode import Mode


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on both axes.

    Attributes:
        step: After how many optimizer steps.
        ts: When, in Unix seconds.
        text: In a few words: "resumed · ZeRO · 4 devices", "checkpoint 12".
    """

    kind: Literal["resumed", "checkpoint"]
    step: float
    ts: float
    text: str


def marks_of(events: Iterable[Mapping[str, Any]]) -> list[Mark]:
    """Return the marks of a run, oldest first, without checkpoints of steps that a resumed run trains again."""
    marks: list[Mark] = []
    before: tuple[Any, Any] | None = None
    for event in events:
        kind, ts = event.get("event"), event.get("ts")
        if not isinstance(ts, int | float):
            continue
        if kind == "commit" and isinstance(event.get("step"), int):
            number = event.get("checkpoint", event.get("generation"))  # 0.1
            marks.append(Mark("checkpoint", event["step"], ts, f"checkpoint {number}"))
        elif kind in ("launch", "resumed"):
            step = _resumed_at(event.get("resumed_from"))
            if step is not None:
                marks = [mark for mark in marks if mark.step <= step]
                marks.append(Mark("resumed", step, ts, _resumed_text(event, before)))
            if kind == "launch":
                before = (event.get("mode"), event.get("world_size"))
    return marks


def _resumed_at(steps: object) -> float | None:
    known = [step for step in steps.values() if isinstance(step, int)] if isinstance(steps, dict) else []
    return max(known, default=None)


def _resumed_text(event: Mapping[str, Any], before: tuple[Any, Any] | None) -> str:
    parts = ["resumed"]
    mode, devices = event.get("mode"), event.get("world_size")
    if before is not None and mode is not None and mode != before[0]:
        parts.append(Mode.read(str(mode)).label)
    if before is not None and isinstance(devices, int) and devices != before[1]:
        parts.append(f"{devices} device{'' if devices == 1 else 's'}")
    return " · ".join(parts)
