"""Progress bars in a printed line: tqdm's and those like it."""

from __future__ import annotations

import re
from typing import Final

from core.recipes.user_script import plain
from workers.script.printed.names import Names
from workers.script.printed.pairs import read_pairs
from workers.script.printed.readings import BAR, EVALUATION_LINE, STEP, Bar, Counter, Reading

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


def take_bar(text: str, reading: Reading, names: Names) -> str:
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
        for chart, value in {**postfix.values, **postfix.evaluation}.items():
            reading.add(chart, value, names)
    title = title.strip().rstrip(":").replace("|", " | ")
    found = re.match(r"^(\d+)\s\|\s(\d+)\s\|", title)  # torchtune: epoch|step|Loss: 2.3
    if found is not None:
        reading.epoch = float(found[1])
        reading.count(Counter(STEP, int(found[2])))
        title = title[found.end() :]
    return f"{title if training else ''} | {behind}"


def _short_number(text: str) -> int:
    factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    return int(float(text.rstrip("kM")) * factor)
