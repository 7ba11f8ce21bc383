"""Pairs in a printed line: `name: value`, `name=value`, `name value`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from workers.script.printed.counters import take_counters
from workers.script.printed.names import Names
from workers.script.printed.readings import EVALUATION_LINE, NAN, NUMBER, WRAPPED_NUMBER, Reading

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
    """Chart, number, and whether a sign (`:` or `=`) ties the two."""
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
