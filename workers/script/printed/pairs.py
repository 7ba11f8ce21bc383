"""Pairs in a printed line: `name: value`, `name=value`, `name value`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from workers.script.printed.names import Names
from workers.script.printed.readings import (
    BATCH,
    EVALUATION_LINE,
    GLOBAL,
    ITERATION,
    LEADING,
    NAN,
    NUMBER,
    PLACE,
    STEP,
    WRAPPED_NUMBER,
    Counter,
    Reading,
)

# The others are batches.
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
_COUNTER: Final = re.compile(
    r"(?<![\w./-])(?P<name>global[ _-]?step|num_updates|(?:eval )?num_timesteps|optimizer[ _-]step|"
    r"train(?:ing)?[ _-]step|gstep|steps?|iterations?|iters?|itr|it|updates?|(?:mini)?batch(?:es|_idx)?|epochs?)"
    r"\b[\"']?\s*(?:\([a-z]+\)\s*)?[:=#]?\s*[\[(]?\s*"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d.,]*[eE%]|\.?\d|[ ]?(?:ms|s|sec|seconds|tok)\b)"
    r"(?:\s*(?:/|of)\s*(?P<total>\d[\d,]*))?\s*[\])]?",
    re.IGNORECASE,
)
# What stands behind this comma are no thousands.
_DECIMALS: Final = re.compile(r"^0+,\d|^\d+,(?!\d{3}(?:,|$))\d+$")
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
# ``10 | loss 3.5``: a number without a name at the beginning of a line.
_LEADING: Final = re.compile(r"(?P<number>\d+)\s*[|,]\s*(?=[A-Za-z])")


def take_counters(text: str, reading: Reading, in_bar: bool) -> str:
    """Read the counters and take them out of the text."""

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
    """Read ``0,83`` as a part of one; None for ``1,234``, which is hardly more than a thousand epochs."""
    text = text.rstrip(",")
    if "," in text and not _DECIMALS.search(text):
        return None
    return float(text.replace(",", "."))


def _form(found: re.Match[str], name: str = "") -> str:
    """The words before a counter and its name, without digits and signs."""
    before = re.sub(r"[\d\W]+", " ", found.string[: found.start()])
    return f"{before[-40:]}{name.lower()}"


def _is_name_of_pair(text: str, found: re.Match[str]) -> bool:
    """True for `batch 0.5` in `time/batch 0.5`, or a counter's word that ends a longer name (`loss per step: 3`)."""
    return re.search(r"(?:[\w)]/|\bper\s+)$", text[: found.start()]) is not None


def _integer(text: str) -> int:
    return int(text.replace(",", "").partition(".")[0])


_VALUE: Final = re.compile(
    rf"(?<![\w.@#/\\-])(?P<number>{NUMBER}|{NAN}(?![\w]))"
    r"(?:\s?/\s?(?P<total>\d[\d,]*))?"
    r"(?:\s?(?P<unit>%|ms|us|µs|secs?|seconds?|min|s|m|h|x|tok(?:en)?s?/s(?:ec)?|tokens?/second|(?:samples?|images?|imgs?"
    r"|examples?|it)/s(?:ec(?:ond)?)?|s/it|s/step|ms/step))?"
    r"(?![\w/:]|\.\d)",
    re.IGNORECASE,
)
_UNIT_NAME: Final = re.compile(r"\s*\((ms|us|s|sec|seconds|min)\)(?=\s*[:=])")
_LIST: Final = re.compile(r"([:=])\s*\[\s*(?=[-+.\d])")
_SPLITTERS: Final = re.compile(r"[|,;`\t()\[\]{}<>*•·—→]|\s{2,}|\.\s|(?<=\w):\s(?=[A-Za-z])|\s-\s")
_NAMED_NEXT: Final = re.compile(r"\s*[:=]?\s*[-+]?\.?\d")
_IGNORED_NAMES: Final = frozenset((
    "in", "at", "to", "of", "for", "took", "with", "after", "every", "from", "and", "is", "was", "than", "best", "the",
    "a", "an", "on", "by", "over", "about", "up", "best_so_far", "using", "saved", "saving", "loaded", "loading",
    "found", "got", "last", "next", "first",
))  # fmt: skip
_RATES: Final = (
    (re.compile(r"^tok", re.IGNORECASE), "tokens_per_s"),
    (re.compile(r"^(?:samples?|images?|imgs?|examples?)/s", re.IGNORECASE), "samples_per_s"),
    (re.compile(r"^(?:s/it|s/step|ms/step|ms)$", re.IGNORECASE), "step_time_s"),
    (re.compile(r"^it/s", re.IGNORECASE), "steps_per_s"),
)
_SECONDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("ms", "ms/step"), 1e-3), **dict.fromkeys(("us", "µs"), 1e-6), **dict.fromkeys(("min", "m"), 60.0),
    "h": 3600.0,
}  # fmt: skip


def read_pairs(text: str, reading: Reading, names: Names, evaluating: bool, *, in_bar: bool) -> None:
    text = WRAPPED_NUMBER.sub(r"\1", text)
    text = take_counters(_UNIT_NAME.sub(r"_in_\1", text), reading, in_bar)
    text = _LIST.sub(r"\1 ", text)
    if text.count('"') > 1 and re.search(r'"\w+"\s*:', text):
        return  # a line of a pretty-printed JSON file
    has_step = reading.counter is not None or reading.epoch is not None
    found = list(_pairs(text, names, evaluating or EVALUATION_LINE.match(text) is not None))
    known = any(names.is_known(chart) and sure for chart, _, sure in found) or any(
        names.begins_record(chart) for chart, _, _ in found
    )
    for chart, number, sure in found:
        if names.is_known(chart) or (sure and (has_step or known)) or (known and not sure):
            reading.add(chart, number, names)


def _pairs(text: str, names: Names, evaluating: bool) -> Iterator[tuple[str, float, bool]]:
    """Yield chart, number, and whether a sign (`:` or `=`) ties the two."""
    before = 0
    for found in _VALUE.finditer(text):
        left, before = text[before : found.start()], found.end()
        unit = (found["unit"] or "").lower()
        if unit and _NAMED_NEXT.match(text, found.end()):  # `loss 2.5 tok/s 900`: a name and no unit
            unit, before = "", found.start("unit")
        label = left.rstrip()
        sure = label.endswith((":", "="))
        label = _SPLITTERS.split(label.rstrip(":= "))[-1].strip(" -–:=\"'#~≈^/")
        name = _chosen_name(label, sure, names)
        rate = next((chart for pattern, chart in _RATES if unit and pattern.match(unit)), "")
        if not name and not label and rate:
            name, sure = rate, True
        if not name and unit == "%" and (tail := re.match(r"\s*(?:\w+\s)?(mfu)\b", text[found.end() :], re.IGNORECASE)):
            name, sure = tail[1], True
        if not name:
            continue
        if rate in ("tokens_per_s", "samples_per_s"):
            name = rate
        chart, factor = names.chart(name, evaluating)
        number = None if found["unit"] == "M" else _value(found, unit, chart, names)  # megabytes are no minutes
        if chart and number is not None:
            names.note(name, number)
            yield chart, number * factor, sure


def _chosen_name(label: str, sure: bool, names: Names) -> str:
    """The name in the words before a number; empty where they are prose."""
    parts = label.split()
    while parts and parts[0][0].isdigit():  # `1234.5/s/gpu LR`
        parts.pop(0)
    label = " ".join(parts)
    if not parts or not re.search(r"[A-Za-z]", parts[-1]) or len(label) > 64:
        return ""
    if sure and len(parts) <= 5:
        return label
    for count in (3, 2, 1):  # `train loss 2.3`, `Acc@1 50`
        if len(parts) >= count and names.is_known(names.chart(" ".join(parts[-count:]))[0]):
            return " ".join(parts[-count:])
    if sure:
        return parts[-1]
    if len(parts) > 2 or parts[-1].lower() in _IGNORED_NAMES or parts[0].lower() in _IGNORED_NAMES:
        return ""
    return label


def _value(found: re.Match[str], unit: str, chart: str, names: Names) -> float | None:
    number = names.number(found["number"], chart)
    if number is not None and found["total"]:
        total = float(found["total"].replace(",", ""))
        return 100.0 * number / total if total else None  # 9823/10000 right ones: a percentage
    return None if number is None else number * _SECONDS.get(unit, 1.0)
