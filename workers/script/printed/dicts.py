"""Dicts in a printed line, as the Hugging Face Trainer prints them, and JSON."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from workers.script.printed.names import Names
from workers.script.printed.readings import GLOBAL, NUMBER_OR_NAN, STEP, WRAPPED_NUMBER, Counter, Reading

_SUMMARY_KEYS: Final = ("train_runtime", "total_flos", "train_steps_per_second")
_QUOTED_OR_BRACE: Final = re.compile(r"""'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|[{}]""", re.DOTALL)
_STEP_KEYS: Final = ("global_step", "step", "steps", "num_updates", "iteration", "iter", "_step", "train_step")


def take_dict(text: str) -> tuple[str, Mapping[str, Any] | None, str]:
    """The first dict in a line, and what stands around it. Text in braces that is not a dict is taken out too."""
    start = text.find("{")
    if start < 0:
        return text, None, ""
    end = _closing(text, start)
    if end < 0:
        return text[:start], None, ""
    return text[:start], _parsed(text[start : end + 1]), re.sub(r"\{[^{}]*\}", " | ", text[end + 1 :])


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in _QUOTED_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return -1


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        bare = re.sub(r"(?<![\w'\".])(-?)(nan|inf)(?![\w'\"])", r"'\1\2'", WRAPPED_NUMBER.sub(r"\1", text))
        try:
            value = ast.literal_eval(bare)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, SystemError):
            # SystemError: CPython 3.11 after a parse that failed (github.com/python/cpython/issues/106905)
            return None
    return value if isinstance(value, dict) else None


def read_dict(found: Mapping[Any, Any], reading: Reading, names: Names) -> None:
    if any(key in found for key in _SUMMARY_KEYS):
        return  # the Trainer's last words: means over the whole run, no point of the curve
    plain_values = {
        key: number
        for key, value in found.items()
        if isinstance(key, str) and (number := _number(value, key, names)) is not None
    }
    step = next((key for key in _STEP_KEYS if key in plain_values), None)
    nested = any(isinstance(value, dict) for value in found.values())
    part = Reading(epoch=reading.epoch)
    for key, number in plain_values.items():
        if key == step or key.startswith("_"):
            continue
        chart, factor = names.chart(key)
        if chart:
            names.note(key, number)
            part.add(chart, number * factor, names)
    if nested and step is None and not part.is_known:
        return
    if step is not None and math.isfinite(plain_values[step]):
        kind = GLOBAL if step in ("global_step", "num_updates") else STEP
        reading.count(Counter(kind, int(plain_values[step]), form=f"{{{step}}}"))
    if part.counter is not None:
        reading.count(part.counter)
    reading.epoch = part.epoch
    reading.add_all(part, names)


def _number(value: object, key: str, names: Names) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 or not math.isfinite(value) else None
    text = value.strip().removesuffix("%") if isinstance(value, str) and len(value) < 40 else ""
    return names.number(text, names.chart(key)[0]) if NUMBER_OR_NAN.fullmatch(text) else None
