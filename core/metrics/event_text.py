"""Event texts: an event of metrics.jsonl as one line, for the log, the alerts and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from core.config.mode import Mode, mode_label
from core.errors import full_stop, sentences
from core.formatting import byte_size, count, listed, number
from core.machine.devices.names import SEPARATOR, RankNames, label_by_uuid

Event = Mapping[str, Any]
Level = Literal["info", "warning", "error"]
# Events that are alerts, and how bad they are.
ALERT_LEVELS: Final[Mapping[str, Level]] = {
    "alert": "warning",
    "retry": "warning",
    "fallback": "warning",
    "failed": "error",
}


def event_level(event: Event) -> Level:
    kind = str(event.get("event"))
    if kind in ALERT_LEVELS:
        return ALERT_LEVELS[kind]
    return "warning" if kind == "restart" or event.get("diverged") or event.get("warning") else "info"


def is_logged(event: Event) -> bool:
    """True for events that the log may have a line for: of most, such as chunks, it has none."""
    kind = event.get("event")
    return kind in _TEXTS or kind in ALERT_LEVELS


def event_text(event: Event, names: RankNames) -> str:
    """Return the log's line for an event; empty for events that are shown elsewhere, such as samples and chunks."""
    kind = str(event.get("event"))
    if kind in ALERT_LEVELS:
        return full_stop(sentences(*alert_lines(event, names)))
    make = _TEXTS.get(kind)
    return make(event, names) if make is not None else ""


def alert_lines(event: Event, names: RankNames) -> tuple[str, ...]:
    """Title, cause and next step of an alert, if it has them."""
    if event.get("event") == "fallback":
        return tuple(line for line in (_fallback_title(event, names), full_stop(str(event.get("reason", "")))) if line)
    if event.get("event") == "retry":
        return (str(event.get("reason", "")), "Retrying.")
    error = event.get("error")
    source: Event = error if isinstance(error, Mapping) else event
    step = "window_step" if source.get("window_step") else "next_step"
    # Then the reason is a word for programs ("slower").
    has_cause = bool(source.get("cause"))
    keys = ("title", "message", *(() if has_cause else ("reason",)), "cause", step)
    parts = [str(source[key]) for key in keys if source.get(key)]
    if parts:
        return (parts[0], *map(full_stop, parts[1:]))
    rest = {key: value for key, value in event.items() if key not in ("ts", "event", "rank", "attempt", "step")}
    return (", ".join(f"{key}: {value}" for key, value in rest.items()) or str(event.get("event")),)


def _fallback_title(event: Event, names: RankNames) -> str:
    if event.get("engine"):
        return "DeepSpeed could not start, so PyTorch's engine is used instead."
    devices = event.get("devices")
    if event.get("mode") == Mode.INDEPENDENT:
        asked = mode_label(str(event.get("was")), "The selected mode")
        return f"{asked} could not start, so each device trains its own model, and the best one is kept."
    alone = f" ({label_by_uuid(str(devices[0]), names.labels)})" if isinstance(devices, list) and devices else ""
    was = mode_label(str(event.get("was")))
    mode = f"{was[0].upper()}{was[1:]} could not start, so the run" if was else "The run"
    return f"{mode} continued on one device{alone}."


def _launch(event: Event, names: RankNames) -> str:
    devices = event.get("devices")
    short = [_short(str(uuid), names) for uuid in devices] if isinstance(devices, list) else []
    mode = str(event.get("mode") or "")
    on = f" on {listed(short)}" if short else ""
    how = "" if mode in ("", Mode.SINGLE) else f" ({mode_label(mode, mode)})"
    made = event.get("checkpoint", event.get("generation"))  # 0.1
    # By rank where independent ranks stopped at different steps.
    steps = event.get("resumed_from")
    step = (
        max((value for value in steps.values() if isinstance(value, int)), default=None)
        if isinstance(steps, Mapping)
        else steps
    )
    at = f", step {count(step)}" if isinstance(step, int) else ""
    start = "Starting" if made is None else f"Resuming from checkpoint {made}{at}"
    notes = event.get("notes")
    return sentences(f"{start}{on}{how}.", *(map(str, notes) if isinstance(notes, list) else ()))


def _data(event: Event, _names: RankNames) -> str:
    if event.get("text"):
        return sentences(f"Data: {event['text']}", "The tokens were cached." if event.get("reused") else "")
    tokens, rows, bad = event.get("tokens"), event.get("rows"), event.get("bad_rows")
    size = f"{_count(tokens)} tokens" if isinstance(tokens, int) else "ready"
    of = f" in {_count(rows)} rows" if isinstance(rows, int) and isinstance(tokens, int) else ""
    kept = " (cached)" if event.get("reused") else ""
    left = f"{_count(bad)} bad rows are left out." if isinstance(bad, int) and bad else ""
    return sentences(f"Data: {size}{of}{kept}.", left)


def _eval(event: Event, _names: RankNames) -> str:
    figures = {
        name.removeprefix("val_").replace("_", " "): value
        for name, value in event.items()
        if name.startswith("val_") and isinstance(value, int | float)
    }
    text = ", ".join(f"validation {name} {number(value, 4)}" for name, value in figures.items())
    return f"{_at(event)}{text or 'evaluated'}."


def _commit(event: Event, _names: RankNames) -> str:
    made = event.get("checkpoint", event.get("generation"))  # 0.1
    size = event.get("bytes")
    of = f" ({byte_size(size)})" if isinstance(size, int) and size else ""
    diverged = "Its weights are not finite." if event.get("diverged") else ""
    return sentences(f"{_at(event)}checkpoint {made} saved{of}.", diverged)


def _stop(event: Event, _names: RankNames) -> str:
    return "Stop requested, without a checkpoint." if event.get("now") else "Stop requested."


def _finished(event: Event, _names: RankNames) -> str:
    word = "Stopped" if event.get("state") == "stopped" else "Finished"
    step = event.get("step")
    at = f" at step {count(step)}" if isinstance(step, int) and step else ""
    reason = event.get("reason")
    return sentences(f"{word}{at}.", f"Stopped early: {reason}" if reason else "", event.get("cause"))


def _restart(event: Event, _names: RankNames) -> str:
    number = f"Restart {event['number']} of {event.get('of')}." if "number" in event else "The run starts again."
    return sentences(number, *(str(event[name]) for name in ("title", "cause") if event.get(name)))


def _model(event: Event, _names: RankNames) -> str:
    parameters, trained = event.get("parameters"), event.get("trainable")
    part = f", of which {_count(trained)} are trained" if isinstance(trained, int) and trained != parameters else ""
    return f"The model has {_count(parameters)} parameters{part}."


def _merge(event: Event, _names: RankNames) -> str:
    return sentences(f"Models merged: {event.get('chosen')}.", event.get("warning"))


def _own(event: Event, _names: RankNames) -> str:
    text = str(event.get("text") or event.get("words") or "")
    return full_stop(f"{_at(event)}{text}") if text else ""


def _straggler(event: Event, names: RankNames) -> str:
    """Show only its end: an alert says when it begins."""
    return "" if event.get("ranks") else _own(event, names)


def _resumed(event: Event, _names: RankNames) -> str:
    step = event.get("resumed_from")
    return f"The script continued from step {_count(step)}." if isinstance(step, int) else "The script continued."


_TEXTS: Final[Mapping[str, Callable[[Event, RankNames], str]]] = {
    "launch": _launch,
    "resumed": _resumed,
    "data": _data,
    "model": _model,
    "exchange": _own,
    "balance": _own,
    "straggler": _straggler,
    "sample_left_out": lambda event, _names: full_stop(str(event.get("text") or "")),
    "eval": _eval,
    "commit": _commit,
    "merge": _merge,
    "restart": _restart,
    "stop_requested": _stop,
    "finished": _finished,
    "alert_over": _own,
}


def _at(event: Event) -> str:
    step = event.get("step")
    return f"Step {count(step)}: " if isinstance(step, int) else ""


def _count(value: object) -> str:
    return count(value if isinstance(value, int) else None)


def _short(uuid: str, names: RankNames) -> str:
    return label_by_uuid(uuid, names.labels).partition(SEPARATOR)[0]
