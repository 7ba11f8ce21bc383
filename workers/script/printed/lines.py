"""One printed line, read: which numbers stand in it under which names, and which step it is about. Pure.

Understood are dicts as the Hugging Face Trainer prints them, JSON lines, progress bars (tqdm's and those like it),
and `name: value`, `name=value`, `name value` pairs. Nothing is guessed from what a line does not say: which step a
line without one belongs to is decided by `workers.script.printed.steps`.
"""

from __future__ import annotations

import re
from typing import Final

from workers.script.printed.bars import take_bar
from workers.script.printed.dicts import read_dict, take_dict
from workers.script.printed.names import Names
from workers.script.printed.pairs import read_pairs
from workers.script.printed.readings import BATCH, EVALUATION_LINE, Reading
from workers.script.printed.stamps import without_stamps

MAX_PAIRS_CHARS: Final = 4_000
"""Pairs are looked for in a line's beginning only; dicts may be as long as the line."""

_NOT_OURS: Final = re.compile(r"wandb: ")
"""Weights & Biases tells a run's last values again when it ends."""
_RUNNING_MEAN: Final = re.compile(r"\d\s?\(\s*-?\d+\.\d")
"""``Loss 6.5 (6.7)``: a batch's, and the mean so far."""
_TRAINING_LINE: Final = re.compile(r"^\W*(?:train|training|epoch|step|iter|iteration)\b", re.IGNORECASE)
_TRAINING_NUMBER: Final = re.compile(
    r"\btrain(?:ing)?[ _/.-](?:\w+[ _/.-])?(?:loss|acc|accuracy|perplexity|ppl)\b", re.I
)


def read_line(text: str, names: Names, evaluating: bool = False) -> Reading | None:
    """What a piece of output says; None where it says nothing that could be charted.

    Args:
        text: One piece (`workers.script.printed.segments`).
        names: How names become charts.
        evaluating: The lines before it have opened an evaluation.
    """
    if _NOT_OURS.match(text):
        return None
    reading = Reading()
    rest = take_bar(text, reading, names)
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
        reading.counter = None  # a place within the evaluation is not a training step
        if place.number != place.total or _RUNNING_MEAN.search(rest):
            reading.evaluation.clear()
    if reading.evaluation and not any(names.begins_record(chart) for chart in reading.values):
        reading.values.pop("step_time_s", None)  # it is the evaluation's, or the epoch's
    has_step = reading.counter is not None or reading.epoch is not None
    if not has_step and not reading.is_known:
        reading.values.clear()
        reading.evaluation.clear()
    return None if reading.is_empty else reading
