"""One printed line, read: its numbers with their names, and its step. Pure.

Understood are dicts as the Hugging Face Trainer prints them, JSON lines, progress bars (tqdm's and those like it), and
`name: value`, `name=value`, `name value` pairs. Nothing is guessed: `workers.script.printed.steps` decides the step of
a line that names none.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from core.recipes.user_script import plain
from workers.script.printed.names import Names
from workers.script.printed.pairs import read_pairs
from workers.script.printed.readings import (
    BAR,
    BATCH,
    EVALUATION_LINE,
    GLOBAL,
    MOST_STEPS,
    NUMBER_OR_NAN,
    STEP,
    WRAPPED_NUMBER,
    Bar,
    Counter,
    Reading,
)

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK: Final = r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[AP]M\b)?(?:\s?(?:Z|UTC|GMT|[-+]\d\d:?\d\d)\b)?"
_STAMP: Final = (
    r"(?<![\w.])(?:"
    rf"\d{{4}}([-/.])\d{{1,2}}\1\d{{1,2}}(?:[T _]+{_CLOCK})?"  # 2026-11-23T12:00:01.123Z
    rf"|\d{{1,2}}([-/.])\d{{1,2}}\2(?:\d{{4}}|\d\d)(?:,?[ _]+{_CLOCK})?"  # 11/23/2026, 23.11.26
    rf"|\d{{1,2}}[-/]\d{{1,2}},? {_CLOCK}"  # 11/23 12:00:01
    rf"|\d{{1,2}}[- ]{_MONTH}[- ]\d{{2,4}}(?:,? {_CLOCK})?"  # 23-Nov-2026 12:00:01, and syslog's
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?,? {_CLOCK}(?: \d{{4}})?"
    r"|20\d{6}[-_T]?\d{4,6}"  # 20261123_120001
    rf"|(?:\d+ days?, )?{_CLOCK}"
    r")(?![\w])"
)
_FILE: Final = r"[\w/\\.<>-]{1,200}\.(?:py|cpp|cc|cu|json|txt|pt|bin|log)(?::\d+)?(?::[\w<>]+)?"
_LEVEL: Final = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|TRACE|debug|info|warning)\b"
_NOISE: Final = re.compile(rf"{_STAMP}|\[(?:rank|gpu|cuda|default)?[ _:]?\d+\]\s*:|\w+://\S+|\b{_FILE}", re.IGNORECASE)
_SEPARATOR: Final = r"[\s\-–|:,>\[\]()]*"
_MODULE: Final = r"(?!(?:train|test|valid?|eval|dev)\w*\b)[A-Za-z_][\w.]*(?::[\w.<>]+)*(?::\d+)?"
# A logger's words: dates, a level, a file or module, in the orders that are usual.
_BEFORE: Final = re.compile(
    rf"^{_SEPARATOR}(?:[IWEF]\d{{4}} {_CLOCK} +\d+ {_FILE}\]"  # glog
    rf"|(?:\[[\w-]+\]{_SEPARATOR})??(?:(?:{_STAMP}|{_FILE}){_SEPARATOR})*"
    rf"(?:{_MODULE}\s+[-|]\s+)?{_LEVEL}(?:{_SEPARATOR}(?:{_STAMP}|{_FILE}))*"
    rf"(?:(?:\s+[-|]\s+|:(?=\S)|\]\s+){_MODULE}(?=\s+(?:-|\||>>)\s|:\S))?)"
)


def without_stamps(text: str) -> str:
    """Remove a logger's words before a line's message, and any date, time, file or address in it.

    ``11/23/2026 12:00:01 - INFO - __main__ - step 5`` and ``[INFO|trainer.py:88] 2026-11-23 12:00:01,123 >> step 5``
    both are ``step 5``.
    """
    before = _BEFORE.match(text)
    if before is not None:
        text = text[before.end() :].lstrip(" -–|:,>])")
    return _NOISE.sub(" | ", text).lstrip(" |>]:")


_SUMMARY_KEYS: Final = ("train_runtime", "total_flos", "train_steps_per_second")
_QUOTED_OR_BRACE: Final = re.compile(r"""'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|[{}]""", re.DOTALL)
_STEP_KEYS: Final = ("global_step", "step", "steps", "num_updates", "iteration", "iter", "_step", "train_step")


def take_dict(text: str) -> tuple[str, Mapping[str, Any] | None, str]:
    """Take the first dict out of a line, and the text around it. Text in braces that is not a dict is taken out too."""
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
        # The Trainer's last words: means over the whole run, no point of the curve.
        return
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


# Pairs are looked for in a line's beginning only; dicts may be as long as the line.
MAX_PAIRS_CHARS: Final = 4_000

# Weights & Biases tells a run's last values again when it ends.
_NOT_OURS: Final = re.compile(r"wandb: ")
# ``Loss 6.5 (6.7)``: a batch's, and the mean so far.
_RUNNING_MEAN: Final = re.compile(r"\d\s?\(\s*-?\d+\.\d")
_TRAINING_LINE: Final = re.compile(r"^\W*(?:train|training|epoch|step|iter|iteration)\b", re.IGNORECASE)
_TRAINING_NUMBER: Final = re.compile(
    r"\btrain(?:ing)?[ _/.-](?:\w+[ _/.-])?(?:loss|acc|accuracy|perplexity|ppl)\b", re.I
)


_BAR: Final = re.compile(
    r"(?:(?P<percent>\d{1,3})%\s*\|[^|]*\|\s*)?(?P<number>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:\d+:)?\d+:\d+\s*<[^\]]*)\]?"
)
_ENDLESS_BAR: Final = re.compile(r"(?<![\w.])(?P<number>\d+)it \[(?P<inside>(?:\d+:)?\d+:\d+,[^\]]*)\]")
# Lightning's, drawn by Rich: ``Epoch 1/2 ━━━━ 14/16 0:00:01 • 0:00:00 15.40it/s train_loss: 0.5``.
_RICH_BAR: Final = re.compile(
    r"(?<![\w./])(?P<number>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+(?:•\s+)?(?:\d+:\d\d:\d\d|-:--:--)"
    r"(?:\s+(?P<inside>\d+\.\d+(?:it/s|s/it)))?"
)
# ``14/16 ━━━━ 0s 18ms/step - loss: 2.1``; without a bar where only epochs are printed.
_KERAS_BAR: Final = re.compile(
    r"^\s*(?P<number>\d+)/(?P<total>\d+|Unknown)\s(?:[━ ]+|\[[=>.]+\]|-)\s?(?:-\s)?(?:ETA:\s)?(?:\d+:)*\d+s?\s(?:-\s)?"
    r"(?P<inside>\d+(?:ms|us|s)/(?:step|epoch|sample))"
)
_NOT_TRAINING: Final = re.compile(
    r"(?:examples|tokens|files|rows|shards?|tables?|B|\wB|\wiB|chunks|tasks?)/s"
    r"|(?:download|loading|map|filter|tokeniz|generating|fetching|writing|saving|preprocess|materializing|resolving"
    r"|sanity|predict|sampling|importing)",
    re.IGNORECASE,
)


def read_line(text: str, names: Names, evaluating: bool = False) -> Reading | None:
    """Read a piece of output; None where nothing in it could be charted.

    `evaluating`: the lines before it have opened an evaluation.
    """
    if _NOT_OURS.match(text):
        return None
    reading = Reading()
    rest = _take_bar(text, reading, names)
    prefix, found, suffix = take_dict(rest)
    if found is not None:
        rest = f"{prefix} | {suffix}"
    rest = without_stamps(rest[:MAX_PAIRS_CHARS])
    title = rest if reading.bar is None else text
    evaluation = EVALUATION_LINE.match(title) is not None
    if evaluation or _TRAINING_LINE.match(title) or (evaluating and _TRAINING_NUMBER.search(title)):
        reading.heading = evaluation
    evaluating = evaluation or (evaluating and reading.heading is None)
    if found is not None:
        read_dict(found, reading, names)
    read_pairs(rest, reading, names, evaluating, in_bar=reading.bar is not None)
    place = reading.counter
    if evaluating and place is not None and place.kind >= BATCH:
        # A place within the evaluation is not a training step.
        reading.counter = None
        if place.number != place.total or _RUNNING_MEAN.search(rest):
            reading.evaluation.clear()
    if reading.evaluation and not any(names.begins_record(chart) for chart in reading.values):
        reading.values.pop("step_time_s", None)  # it is the evaluation's, or the epoch's
    has_step = reading.counter is not None or reading.epoch is not None
    if not has_step and not reading.is_known:
        reading.values.clear()
        reading.evaluation.clear()
    return None if reading.is_empty else reading


def _take_bar(text: str, reading: Reading, names: Names) -> str:
    """Read a bar; return the words before it and the text behind it on the same line."""
    patterns = (_BAR, _ENDLESS_BAR, _RICH_BAR, _KERAS_BAR)
    found = next((found for pattern in patterns if (found := pattern.search(text)) is not None), None)
    if found is None:
        return text
    title, inside = text[: found.start()], found["inside"] or ""
    number = _short_number(found["number"])
    ends = "total" in found.re.groupindex and found["total"] != "Unknown"
    total = _short_number(found["total"]) if ends else None
    training = _NOT_TRAINING.search(f"{title} {inside}") is None and EVALUATION_LINE.match(title) is None
    reading.bar = Bar(plain(re.sub(r"[\d.,]+", "", title)), number, total, training)
    if training:
        reading.count(Counter(BAR, number, total))
    # Behind times and rate: what `set_postfix` wrote.
    extra = ",".join(inside.split(",")[2:])
    behind = text[found.end() :]
    if training and extra:
        postfix = Reading()
        read_pairs(extra, postfix, names, False, in_bar=True)
        reading.add_all(postfix, names)
    title = title.strip().rstrip(":").replace("|", " | ")
    found = re.match(r"^(\d+)\s\|\s(\d+)\s\|", title)  # torchtune: epoch|step|Loss: 2.3
    if found is not None:
        reading.epoch = float(found[1])
        reading.count(Counter(STEP, int(found[2])))
        title = title[found.end() :]
    return f"{title if training else ''} | {behind}"


def _short_number(text: str) -> int:
    factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    return int(min(float(text.rstrip("kM")) * factor, MOST_STEPS))
