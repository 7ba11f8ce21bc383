"""Numbers for the charts, messages for the person, and whether the run is to stop."""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional

from .link import connected, plain_number

_next_step = 0
_gathered: Dict[str, Any] = {}
_has_polled = False


def log(
    data: Optional[Mapping[str, Any]] = None,
    step: Optional[int] = None,
    commit: Optional[bool] = None,
    **values: Any,
) -> None:
    """Charts numbers: `log(step=10, loss=0.5)`, or `log({"loss": 0.5}, step=10)`. Never waits.

    Args:
        data: Names and numbers; nested dicts are joined with ``/``. Anything that is not a number is ignored.
        step: Optimizer steps done. If left out, calls are counted.
        commit: False keeps the numbers for the next call, which then counts.
        values: More names and numbers.
    """
    global _next_step, _gathered
    found = dict(data) if isinstance(data, dict) else {}
    found.update((name, value) for name, value in values.items() if name != "sync")
    if step is None and isinstance(found.get("step"), (int, float)) and not isinstance(found["step"], bool):
        step = found.pop("step")
    link = connected()
    if not link.alive:
        return
    _gathered.update((name, _taken_now(value)) for name, value in found.items())
    if commit is False:
        return
    found, _gathered = _gathered, {}
    try:
        number = _next_step if step is None else int(step)
    except (TypeError, ValueError):
        number = _next_step
    _next_step = number + 1
    link.put({"log": found, "step": number, "ts": time.time()})


def should_stop() -> bool:
    """Whether the run was asked to stop. Save what is to be kept, then exit: there is a deadline."""
    global _has_polled
    link = connected()
    if not _has_polled and link.alive:
        _has_polled = True
        link.put({"polls": True})
    return link.stop


def alert(title: str = "", text: str = "") -> None:
    """Shows a person a message."""
    connected().put({"alert": str(title)[:200], "text": str(text)[:2000]})


def finish() -> None:
    """Sends what is still queued. More may be logged afterwards."""
    link = connected()
    if _gathered:
        log({}, commit=True)
    link.flush()


def _taken_now(value: Any) -> Any:
    """Reads a CPU tensor at once, as it may change a moment later. One on a GPU is read later: reading would wait."""
    if isinstance(value, dict):
        return {name: _taken_now(item) for name, item in value.items()}
    if isinstance(value, (int, float, str, bytes)) or value is None or getattr(value, "is_cuda", False):
        return value
    return plain_number(value)
