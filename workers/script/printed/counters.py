"""Steps, iterations, batches and epochs in a printed line, and places such as `[3/10]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from workers.script.printed.readings import BATCH, GLOBAL, ITERATION, LEADING, PLACE, STEP, Counter, Reading

_KINDS: Final[Mapping[str, int]] = {
    name: kind
    for kind, names in {
        GLOBAL: "global_step globalstep num_updates optimizer_step train_step training_step gstep num_timesteps "
        "eval_num_timesteps",
        STEP: "step steps",
        ITERATION: "iteration iterations iter iters it itr update updates",
    }.items()
    for name in names.split()
}
"""The others are batches."""
_COUNTER: Final = re.compile(
    r"(?<![\w./-])(?P<name>global[ _-]?step|num_updates|(?:eval )?num_timesteps|optimizer[ _-]step|"
    r"train(?:ing)?[ _-]step|gstep|steps?|iterations?|iters?|itr|it|updates?|(?:mini)?batch(?:es|_idx)?|epochs?)"
    r"\b[\"']?\s*(?:\([a-z]+\)\s*)?[:=#]?\s*[\[(]?\s*"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d.,]*[eE%]|\.?\d|[ ]?(?:ms|s|sec|seconds|tok)\b)"
    r"(?:\s*(?:/|of)\s*(?P<total>\d[\d,]*))?\s*[\])]?",
    re.IGNORECASE,
)
_DECIMALS: Final = re.compile(r"^0+,\d|^\d+,(?!\d{3}(?:,|$))\d+$")
"""What stands behind this comma are no thousands."""
_NOT_COUNTED: Final = re.compile(
    r"(?:total|max|num|number of|warm-?up|every|per|each|best|optimization|save|saved|eval|log|logging|remaining|for|in"
    r"|until|after|last)[\s_-]*$",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"[\[(]\s*(?P<number>\d[\d,]*)\s*(?:/|of)\s*(?P<total>\d[\d,]*)\s*(?:\(\s*\d+(?:\.\d+)?%\s*\))?\s*[\])]"
)
_PAIR_PLACE: Final = re.compile(r"^\W{0,2}\[\s*(?P<epoch>\d+)\s*,\s*(?P<number>\d[\d,]*)\s*(?:/\s*\d+)?\s*\]")
_EPOCH_PLACE: Final = re.compile(r"\[\s*(?P<epoch>\d+)\s*/\s*\d+\s*\]\s*\[\s*(?P<number>\d+)\s*/\s*(?P<total>\d+)\s*\]")
_COUNTED_PLACE: Final = re.compile(
    r"(?<![\w.])(?P<number>\d[\d,]*)\s*/\s*(?P<total>\d[\d,]*)\s*(?:batches|steps|iterations|iters)\b", re.IGNORECASE
)
_AT_STEP: Final = re.compile(
    r"(?P<name>[A-Za-z][\w ]{0,30}?)\s+(?:at|after|for|in|of)\s+"
    r"(?P<step>(?:global )?step|iter(?:ation)?|epoch|batch)\s*[#:]?\s*(?P<number>\d+)\s*(?::|=|is|was)\s*(?=[-+.\d])",
    re.IGNORECASE,
)
_BARE_PLACE: Final = re.compile(
    r"(?<![\w.])(?P<number>\d[\d,]*)\s*/\s*(?P<total>\d[\d,]*)(?=\s*(?:\[[=>. ]|[|\[]|\s[a-z_]+[=:]|$))"
)
_LEADING: Final = re.compile(r"(?P<number>\d+)\s*[|,]\s*(?=[A-Za-z])")
"""``10 | loss 3.5``: a number without a name at the beginning of a line."""


def take_counters(text: str, reading: Reading, in_bar: bool) -> str:
    """Reads the counters and takes them out of the text."""

    def count(found: re.Match[str], kind: int, name: str = "") -> str:
        groups = found.groupdict()
        if "epoch" in groups:
            reading.epoch = float(groups["epoch"])
        total = _integer(groups["total"]) if groups.get("total") else None
        reading.count(Counter(kind, _integer(groups["number"]), total, _form(found, name)))
        return " | "

    def named(found: re.Match[str]) -> str:
        if _NOT_COUNTED.search(text[: found.start()]) or _is_name_of_pair(text, found):
            return found[0]
        name = re.sub(r"[\s-]+", "_", found["name"].lower())
        if name.startswith("epoch"):
            if reading.epoch is None and (epoch := _epoch(found["number"])) is not None:
                reading.epoch = epoch
                reading.epoch_form = "" if found["total"] else _form(found, found["name"])
            return " | "
        return (
            found[0]
            if "." in found["number"] or _DECIMALS.search(found["number"])
            else count(found, _KINDS.get(name, BATCH), found["name"])
        )

    def placed(found: re.Match[str]) -> str:
        number, total = _integer(found["number"]), _integer(found["total"])
        return count(found, PLACE) if total >= number and total > 1 else found[0]

    place = _PAIR_PLACE.match(text)
    if place is not None and ":" in text[place.end() :]:
        count(place, BATCH)
        text = text[place.end() :]
    text = _AT_STEP.sub(r"\g<step> \g<number> | \g<name>: ", text)
    text = _EPOCH_PLACE.sub(lambda found: count(found, PLACE), text, count=1)
    text = _COUNTER.sub(named, text)
    text = _COUNTED_PLACE.sub(lambda found: count(found, BATCH), text, count=1)
    text = _PLACE.sub(placed, text)
    if reading.counter is None and not in_bar and (reading.epoch is not None or re.match(r"\W*\d+\s*/", text)):
        text = _BARE_PLACE.sub(placed, text, count=1)
    leading = _LEADING.match(text) if reading.counter is None and not in_bar else None
    if leading is not None:
        reading.count(Counter(LEADING, _integer(leading["number"]), form="|"))
        text = text[leading.end() :]
    return text


def _epoch(text: str) -> float | None:
    """``0,83`` is a part of one; None for ``1,234``, which is hardly more than a thousand of them."""
    text = text.rstrip(",")
    if "," in text and not _DECIMALS.search(text):
        return None
    return float(text.replace(",", "."))


def _form(found: re.Match[str], name: str = "") -> str:
    """The words before a counter and its name, without digits and signs."""
    before = re.sub(r"[\d\W]+", " ", found.string[: found.start()])
    return f"{before[-40:]}{name.lower()}"


def _is_name_of_pair(text: str, found: re.Match[str]) -> bool:
    """`batch 0.5` in `time/batch 0.5`, or a counter's word that ends a longer name (`loss per step: 3`)."""
    return re.search(r"(?:[\w)]/|\bper\s+)$", text[: found.start()]) is not None


def _integer(text: str) -> int:
    return int(text.replace(",", "").partition(".")[0])
