"""One printed line, read: which numbers stand in it under which names, and which step it is about. Pure.

Understood are dicts as the Hugging Face Trainer prints them, JSON lines, progress bars (tqdm's and those like it),
and `name: value`, `name=value`, `name value` pairs. Nothing is guessed from what a line does not say: which step a
line without one belongs to is decided by `workers.script.steps`.
"""

from __future__ import annotations

import re
from typing import Final

from workers.script.bars import take_bar
from workers.script.dicts import read_dict, take_dict
from workers.script.names import Names
from workers.script.pairs import read_pairs
from workers.script.readings import BATCH, EVALUATION_LINE, Reading

MAX_PAIRS_CHARS: Final = 4_000
"""Pairs are looked for in a line's beginning only; dicts may be as long as the line."""

_TRAINING_LINE: Final = re.compile(r"^\W*(?:train|training|epoch|step|iter|iteration)\b", re.IGNORECASE)
_TRAINING_NUMBER: Final = re.compile(
    r"\btrain(?:ing)?[ _/.-](?:\w+[ _/.-])?(?:loss|acc|accuracy|perplexity|ppl)\b", re.I
)


def read_line(text: str, names: Names, evaluating: bool = False) -> Reading | None:
    """What a piece of output says; None where it says nothing that could be charted.

    Args:
        text: One piece (`workers.script.segments`).
        names: How names become charts.
        evaluating: The lines before it have opened an evaluation.
    """
    reading = Reading()
    evaluation = EVALUATION_LINE.match(text) is not None
    if evaluation or _TRAINING_LINE.match(text) or (evaluating and _TRAINING_NUMBER.search(text)):
        reading.heading = evaluation
    evaluating = evaluation or (evaluating and reading.heading is None)
    rest = take_bar(text, reading, names)
    prefix, found, suffix = take_dict(rest)
    if found is not None:
        read_dict(found, reading, names)
        rest = f"{prefix} | {suffix}"
    read_pairs(rest[:MAX_PAIRS_CHARS], reading, names, evaluating, in_bar=reading.bar is not None)
    if evaluating and reading.counter is not None and reading.counter.kind >= BATCH:
        reading.counter = None  # a place within the evaluation is no step of training
        reading.evaluation.clear()
    if reading.evaluation and not any(names.begins_record(chart) for chart in reading.values):
        reading.values.pop("step_time_s", None)  # it is the evaluation's, or the epoch's
    has_step = reading.counter is not None or reading.epoch is not None
    if not has_step and not reading.is_known:
        reading.values.clear()
        reading.evaluation.clear()
    says = has_step or reading.values or reading.evaluation or reading.bar is not None or reading.heading is not None
    return reading if says else None
