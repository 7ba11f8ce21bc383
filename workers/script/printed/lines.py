"""One printed line, read: which numbers stand in it under which names, and which step it is about. Pure.

Understood are dicts as the Hugging Face Trainer prints them, JSON lines, progress bars (tqdm's and those like it),
and `name: value`, `name=value`, `name value` pairs. Nothing is guessed from what a line does not say: which step a
line without one belongs to is decided by `workers.script.printed.steps`.
"""

from __future__ import annotations

import re
from typing import Final

from core.recipes.user_script import plain
from workers.script.printed.dicts import read_dict, take_dict
from workers.script.printed.names import Names
from workers.script.printed.pairs import read_pairs
from workers.script.printed.readings import BAR, BATCH, EVALUATION_LINE, MOST_STEPS, STEP, Bar, Counter, Reading
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


_BAR: Final = re.compile(
    r"(?:(?P<percent>\d{1,3})%\s*\|[^|]*\|\s*)?(?P<number>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:\d+:)?\d+:\d+\s*<[^\]]*)\]?"
)
_ENDLESS_BAR: Final = re.compile(r"(?<![\w.])(?P<number>\d+)it \[(?P<inside>(?:\d+:)?\d+:\d+,[^\]]*)\]")
_RICH_BAR: Final = re.compile(
    r"(?<![\w./])(?P<number>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+(?:•\s+)?(?:\d+:\d\d:\d\d|-:--:--)"
    r"(?:\s+(?P<inside>\d+\.\d+(?:it/s|s/it)))?"
)
"""Lightning's, drawn by Rich: ``Epoch 1/2 ━━━━ 14/16 0:00:01 • 0:00:00 15.40it/s train_loss: 0.5``."""
_KERAS_BAR: Final = re.compile(
    r"^\s*(?P<number>\d+)/(?P<total>\d+|Unknown)\s(?:[━ ]+|\[[=>.]+\]|-)\s?(?:-\s)?(?:ETA:\s)?(?:\d+:)*\d+s?\s(?:-\s)?"
    r"(?P<inside>\d+(?:ms|us|s)/(?:step|epoch|sample))"
)
"""``14/16 ━━━━ 0s 18ms/step - loss: 2.1``; without a bar where only epochs are printed."""
_NOT_TRAINING: Final = re.compile(
    r"(?:examples|tokens|files|rows|shards?|tables?|B|\wB|\wiB|chunks|tasks?)/s"
    r"|(?:download|loading|map|filter|tokeniz|generating|fetching|writing|saving|preprocess|materializing|resolving"
    r"|sanity|predict|sampling|importing)",
    re.IGNORECASE,
)


def read_line(text: str, names: Names, evaluating: bool = False) -> Reading | None:
    """What a piece of output says; None where it says nothing that could be charted.

    The lines before it have opened an evaluation if `evaluating`.
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


def _take_bar(text: str, reading: Reading, names: Names) -> str:
    """Reads a bar; what is left is its words before it, and whatever was printed behind it on the same line."""
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
    extra = ",".join(inside.split(",")[2:])  # behind times and rate: what `set_postfix` wrote
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
