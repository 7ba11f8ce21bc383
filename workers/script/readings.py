"""One printed line, read: which numbers stand in it under which names, and which step it is about. Pure.

Understood are dicts as the Hugging Face Trainer prints them, JSON lines, progress bars (tqdm's and those like it),
and `name: value`, `name=value`, `name value` pairs. Nothing is guessed from what a line does not say: which step a
line without one belongs to is decided by `workers.script.steps`.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.user_script import plain
from workers.script.names import Names

MAX_PAIRS_CHARS: Final = 4_000
"""Pairs are looked for in a line's beginning only; dicts may be as long as the line."""

# Counters from the surest to the weakest; what a line has of the surest kind is its step.
GLOBAL, STEP, ITERATION, BATCH, BAR, PLACE = range(6)

_KINDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        ("global_step", "num_updates", "optimizer_step", "train_step", "gstep", "training_step", "num_timesteps"),
        GLOBAL,
    ),
    **dict.fromkeys(("step", "steps"), STEP),
    **dict.fromkeys(("iteration", "iterations", "iter", "iters", "it", "update", "updates", "itr", "niter"), ITERATION),
    **dict.fromkeys(("batch", "batches", "minibatch", "batch_idx"), BATCH),
}
_NUMBER: Final = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+(?:[eE][-+]?\d+)?"
_VALUE: Final = re.compile(
    rf"(?<![\w.@#/\\-])(?P<number>{_NUMBER}|[-+]?(?:nan|inf(?:inity)?)(?![\w]))"
    r"(?:\s?/\s?(?P<total>\d[\d,]*))?"
    r"(?:\s?(?P<unit>%|ms|us|µs|secs?|seconds?|min|s|m|h|x|tok(?:en)?s?/s(?:ec)?|tokens?/second|(?:samples?|images?|imgs?"
    r"|examples?|it)/s(?:ec(?:ond)?)?|s/it|s/step|ms/step))?"
    r"(?![\w/:]|\.\d)",
    re.IGNORECASE,
)
_COUNTER: Final = re.compile(
    r"(?<![\w./-])(?P<name>global[ _-]?step|num_updates|(?:eval )?num_timesteps|optimizer[ _-]step|"
    r"train(?:ing)?[ _-]step|gstep|steps?|iterations?|iters?|itr|it|updates?|(?:mini)?batch(?:es|_idx)?|epochs?)"
    r"\b[\"']?\s*(?:\([a-z]+\)\s*)?[:=#]?\s*[\[(]?\s*"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d.,]*[eE%]|\.?\d|[ ]?(?:ms|s|sec|seconds|tok)\b)"
    r"(?:\s*(?:/|of)\s*(?P<total>\d[\d,]*))?\s*[\])]?",
    re.IGNORECASE,
)
_NOT_COUNTED: Final = re.compile(
    r"(?:total|max|num|number of|warm-?up|every|per|each|best|optimization|save|saved|eval|log|logging|remaining|for|in"
    r"|until|after|last)[\s_-]*$",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"[\[(]\s*(?P<number>\d[\d,]*)\s*(?:/|of)\s*(?P<total>\d[\d,]*)\s*(?:\(\s*\d+(?:\.\d+)?%\s*\))?\s*[\])]"
)
_PAIR_PLACE: Final = re.compile(
    r"^\W{0,2}\[\s*(?P<epoch>\d+)\s*,\s*(?P<number>\d[\d,]*)\s*(?:/\s*(?P<total>\d+))?\s*\]"
)
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
_BAR: Final = re.compile(
    r"(?:(?P<percent>\d{1,3})%\s*\|[^|]*\|\s*)?(?P<number>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:\d+:)?\d+:\d+\s*<[^\]]*)\]?"
)
_ENDLESS_BAR: Final = re.compile(r"(?<![\w.])(?P<number>\d+)it \[(?P<inside>(?:\d+:)?\d+:\d+,[^\]]*)\]")
_NOT_TRAINING: Final = re.compile(
    r"(?:examples|tokens|files|rows|shards?|tables?|B|\wB|\wiB|chunks|tasks?)/s"
    r"|(?:download|loading|map|filter|tokeniz|generating|fetching|writing|saving|preprocess|materializing|resolving"
    r"|sanity|predict|sampling|importing)",
    re.IGNORECASE,
)
_LOG_PREFIX: Final = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?)?"
    r"|(?<![\w.])(?:\d+ days?, )?\d+:\d\d(?::\d\d)?(?:\.\d+)?(?![\w])"
    r"|\[(?:rank|gpu|cuda|default)?[ _:]?\d+\]\s*:|\w+://\S+"
    r"|\b[\w/\\.-]+\.(?:py|cpp|cc|cu|json|txt|pt|bin|log)(?::\d+)?(?::\w+)?",
    re.IGNORECASE,
)
_WRAPPED_NUMBER: Final = re.compile(
    r"(?:tensor|array|(?:np|numpy|torch|jnp)\.\w+)\(\s*\[?\s*([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))\s*\]?[^()]*\)"
)
_UNIT_NAME: Final = re.compile(r"\s*\((ms|us|s|sec|seconds|min)\)(?=\s*[:=])")
_LIST: Final = re.compile(r"([:=])\s*\[\s*(?=[-+.\d])")
_SPLITTERS: Final = re.compile(r"[|,;`\t()\[\]{}<>*•·—→]|\s{2,}|\.\s|(?<=\w):\s(?=[A-Za-z])|\s-\s")
_EVALUATION_LINE: Final = re.compile(
    r"^\W*(?:\[[^\]]*\]\s*)?(?:test|tests|testing|val|valid|validation|validating|eval|evaluation|dev)\b", re.IGNORECASE
)
_TRAINING_LINE: Final = re.compile(r"^\W*(?:train|training|epoch|step|iter|iteration)\b", re.IGNORECASE)
_NAMED_NEXT: Final = re.compile(r"\s*[:=]?\s*[-+]?\.?\d")
_STOP_WORDS: Final = frozenset(
    [
        "in",
        "at",
        "to",
        "of",
        "for",
        "took",
        "with",
        "after",
        "every",
        "from",
        "and",
        "is",
        "was",
        "than",
        "best",
        "the",
        "a",
        "an",
        "on",
        "by",
        "over",
        "about",
        "up",
        "best_so_far",
        "using",
        "saved",
        "saving",
        "loaded",
        "loading",
        "found",
        "got",
        "last",
        "next",
        "first",
    ]
)
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
_SUMMARY_KEYS: Final = ("train_runtime", "total_flos", "train_steps_per_second")
_STEP_KEYS: Final = ("global_step", "step", "steps", "num_updates", "iteration", "iter", "_step", "train_step")


@dataclass(frozen=True, slots=True)
class Counter:
    """Where a line says that training is.

    Attributes:
        kind: How sure it is: `GLOBAL` … `PLACE`.
        number: What it counts.
        total: Up to where, if it says so.
    """

    kind: int
    number: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar's state.

    Attributes:
        title: Its words with the digits taken out: the same for each epoch's bar.
        number, total: How far it is; a bar without an end has None.
        training: False where its words or its unit tell of downloads, files, rows.
    """

    title: str
    number: int
    total: int | None
    training: bool = True


@dataclass(slots=True)
class Reading:
    """What one line says.

    Attributes:
        values: Chart → number, of training.
        evaluation: Chart → number, of an evaluation (`val_loss`, …).
        counter: The surest counter in the line.
        epoch: The epoch it names.
        bar: A progress bar in it; `counter` is then the bar's only where nothing surer stands there.
        heading: The line only opens an evaluation ("Test Error:") or ends one; None: it says nothing of that kind.
        is_known: A well-known name is among the charts.
    """

    values: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)
    counter: Counter | None = None
    epoch: float | None = None
    bar: Bar | None = None
    heading: bool | None = None
    is_known: bool = False

    def add(self, chart: str, number: float, names: Names) -> None:
        """Takes a number; the first of a name counts, since running means follow it."""
        if chart == "epoch":
            self.epoch = number if self.epoch is None and math.isfinite(number) else self.epoch
            return
        target = self.evaluation if names.is_evaluation(chart) else self.values
        target.setdefault(chart, number)
        self.is_known = self.is_known or names.is_known(chart)

    def count(self, counter: Counter) -> None:
        """Takes a counter, if it is surer than what is there."""
        if self.counter is None or counter.kind < self.counter.kind:
            self.counter = counter


def read_line(text: str, names: Names, evaluating: bool = False) -> Reading | None:
    """What a piece of output says; None where it says nothing that could be charted.

    Args:
        text: One piece (`workers.script.segments`).
        names: How names become charts.
        evaluating: The lines before it have opened an evaluation.
    """
    reading = Reading()
    evaluation = _EVALUATION_LINE.match(text) is not None
    if evaluation or _TRAINING_LINE.match(text):
        reading.heading = evaluation
    evaluating = evaluation or (evaluating and reading.heading is None)
    rest = _take_bar(text, reading, names)
    prefix, found, suffix = _take_dict(rest)
    if found is not None:
        _read_dict(found, reading, names)
        rest = f"{prefix} | {suffix}"
    _read_pairs(rest[:MAX_PAIRS_CHARS], reading, names, evaluating, in_bar=reading.bar is not None)
    if evaluating and reading.counter is not None and reading.counter.kind >= BATCH:
        reading.counter = None  # a place within the evaluation is no step of training
        reading.evaluation.clear()
    has_step = reading.counter is not None or reading.epoch is not None
    if not has_step and not reading.is_known:
        reading.values.clear()
        reading.evaluation.clear()
    says = has_step or reading.values or reading.evaluation or reading.bar is not None or reading.heading is not None
    return reading if says else None


# --- progress bars ---------------------------------------------------------------------------------------


def _take_bar(text: str, reading: Reading, names: Names) -> str:
    """Reads a bar; what is left is its words before it, and whatever was printed behind it on the same line."""
    found = _BAR.search(text) or _ENDLESS_BAR.search(text)
    if found is None:
        return text
    title, inside = text[: found.start()], found["inside"]
    number = _short_number(found["number"])
    total = _short_number(found["total"]) if "total" in found.re.groupindex else None
    training = _NOT_TRAINING.search(f"{title} {inside}") is None and _EVALUATION_LINE.match(title) is None
    reading.bar = Bar(plain(re.sub(r"[\d.,]+", "", title)), number, total, training)
    if training:
        reading.count(Counter(BAR, number, total))
    extra = ",".join(inside.split(",")[2:])  # behind times and rate: what `set_postfix` wrote
    behind = text[found.end() :]
    if training and extra:
        postfix = Reading()
        _read_pairs(extra, postfix, names, False, in_bar=True)
        for chart, value in {**postfix.values, **postfix.evaluation}.items():
            reading.add(chart, value, names)
    title = title.strip().rstrip(":").replace("|", " | ")
    words = re.match(r"^(\d+)\s\|\s(\d+)\s\|", title)  # torchtune: epoch|step|Loss: 2.3
    if words is not None:
        reading.epoch = float(words[1])
        reading.count(Counter(STEP, int(words[2])))
        title = title[words.end() :]
    return f"{title if training else ''} | {behind}"


def _short_number(text: str) -> int:
    factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    return int(float(text.rstrip("kM")) * factor)


# --- dicts -----------------------------------------------------------------------------------------------


def _take_dict(text: str) -> tuple[str, Mapping[str, Any] | None, str]:
    """The first dict in a line, and what stands around it. Text in braces that is no dict is taken out all the same."""
    start = text.find("{")
    if start < 0:
        return text, None, ""
    end = _closing(text, start)
    if end < 0:
        return text[:start], None, ""
    return text[:start], _parsed(text[start : end + 1]), re.sub(r"\{[^{}]*\}", " | ", text[end + 1 :])


def _closing(text: str, start: int) -> int:
    depth, quote, index = 0, "", start
    while index < len(text):
        sign = text[index]
        if quote:
            if sign == "\\":
                index += 1
            elif sign == quote:
                quote = ""
        elif sign in "\"'":
            quote = sign
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return -1


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        bare = re.sub(r"(?<![\w'\".])(-?)(nan|inf)(?![\w'\"])", r"'\1\2'", _WRAPPED_NUMBER.sub(r"\1", text))
        try:
            value = ast.literal_eval(bare)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    return value if isinstance(value, dict) else None


def _read_dict(found: Mapping[Any, Any], reading: Reading, names: Names) -> None:
    if any(key in found for key in _SUMMARY_KEYS):
        return  # the Trainer's last words: means over the whole run, no point of the curve
    plain_values = {
        key: number for key, value in found.items() if isinstance(key, str) and (number := _number(value)) is not None
    }
    step = next((key for key in _STEP_KEYS if key in plain_values), None)
    nested = any(isinstance(value, dict) for value in found.values())
    part = Reading(epoch=reading.epoch)
    for key, number in plain_values.items():
        if key == step or key.startswith("_"):
            continue
        chart, factor = names.chart(key)
        if chart:
            part.add(chart, number * factor, names)
    if nested and step is None and not part.is_known:
        return
    if step is not None and math.isfinite(plain_values[step]):
        kind = GLOBAL if step in ("global_step", "num_updates") else STEP
        reading.count(Counter(kind, int(plain_values[step])))
    reading.epoch = part.epoch
    reading.is_known = reading.is_known or part.is_known
    for chart, value in {**part.values, **part.evaluation}.items():
        reading.add(chart, value, names)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 or not math.isfinite(value) else None
    if isinstance(value, str) and len(value) < 40:
        text = value.strip().replace(",", "").removesuffix("%")
        try:
            return float(text) if re.fullmatch(rf"{_NUMBER}|[-+]?(?:nan|inf(?:inity)?)", text, re.IGNORECASE) else None
        except ValueError:
            return None
    return None


# --- pairs -----------------------------------------------------------------------------------------------


def _read_pairs(text: str, reading: Reading, names: Names, evaluating: bool, *, in_bar: bool) -> None:
    text = _LOG_PREFIX.sub(" | ", _WRAPPED_NUMBER.sub(r"\1", text))
    text = _take_counters(_UNIT_NAME.sub(r"_in_\1", text), reading, in_bar)
    text = _LIST.sub(r"\1 ", text)
    if text.count('"') > 1 and re.search(r'"\w+"\s*:', text):
        return  # a line of a pretty-printed JSON file
    has_step = reading.counter is not None or reading.epoch is not None
    found = list(_pairs(text, names, evaluating or _EVALUATION_LINE.match(text) is not None))
    known = any(names.is_known(chart) and sure for chart, _, sure in found) or any(
        names.begins_record(chart) for chart, _, _ in found
    )
    for chart, number, sure in found:
        if names.is_known(chart) or (sure and (has_step or known)) or (known and not sure):
            reading.add(chart, number, names)


def _take_counters(text: str, reading: Reading, in_bar: bool) -> str:
    """Reads the counters and takes them out of the text."""
    place = _PAIR_PLACE.match(text)
    if place is not None and ":" in text[place.end() :]:
        reading.epoch = float(place["epoch"])
        reading.count(Counter(BATCH, _integer(place["number"])))
        text = text[place.end() :]

    text = _AT_STEP.sub(r"\g<step> \g<number> | \g<name>: ", text)
    both = _EPOCH_PLACE.search(text)
    if both is not None:
        reading.epoch = float(both["epoch"])
        reading.count(Counter(PLACE, _integer(both["number"]), _integer(both["total"])))
        text = text[: both.start()] + " | " + text[both.end() :]

    def named(found: re.Match[str]) -> str:
        if _NOT_COUNTED.search(text[: found.start()]) or _is_name_of_pair(text, found):
            return found[0]
        name = re.sub(r"[\s-]+", "_", found["name"].lower())
        if name.startswith("epoch"):
            reading.epoch = float(found["number"].replace(",", "")) if reading.epoch is None else reading.epoch
        elif "." in found["number"]:
            return found[0]
        else:
            name = {
                "globalstep": "global_step",
                "training_step": "train_step",
                "eval_num_timesteps": "num_timesteps",
            }.get(name, name)
            total = _integer(found["total"]) if found["total"] else None
            reading.count(Counter(_KINDS.get(name, BATCH), _integer(found["number"]), total))
        return " | "

    text = _COUNTER.sub(named, text)
    counted = _COUNTED_PLACE.search(text)
    if counted is not None:
        reading.count(Counter(BATCH, _integer(counted["number"]), _integer(counted["total"])))
        text = text[: counted.start()] + " | " + text[counted.end() :]

    def placed(found: re.Match[str]) -> str:
        number, total = _integer(found["number"]), _integer(found["total"])
        if total >= number and total > 1:
            reading.count(Counter(PLACE, number, total))
            return " | "
        return found[0]

    text = _PLACE.sub(placed, text)
    if reading.counter is None and not in_bar and (reading.epoch is not None or re.match(r"\W*\d+\s*/", text)):
        text = _BARE_PLACE.sub(placed, text, count=1)
    return text


def _is_name_of_pair(text: str, found: re.Match[str]) -> bool:
    """`batch 0.5` in `time/batch 0.5`, or a counter's word that ends a longer name (`loss per step: 3`)."""
    return re.search(r"(?:[\w)]/|\bper\s+)$", text[: found.start()]) is not None


def _integer(text: str) -> int:
    return int(text.replace(",", "").partition(".")[0])


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
        number = None if found["unit"] == "M" else _value(found, unit)  # megabytes are no minutes
        if chart and number is not None:
            yield chart, number * factor, sure


def _chosen_name(label: str, sure: bool, names: Names) -> str:
    """The name in the words before a number; empty where they are prose."""
    words = label.split()
    while words and words[0][0].isdigit():  # `1234.5/s/gpu LR`
        words.pop(0)
    label = " ".join(words)
    if not words or not re.search(r"[A-Za-z]", words[-1]) or len(label) > 64:
        return ""
    if sure and len(words) <= 5:
        return label
    for count in (3, 2, 1):  # `train loss 2.3`, `Acc@1 50`
        if len(words) >= count and names.is_known(names.chart(" ".join(words[-count:]))[0]):
            return " ".join(words[-count:])
    if sure:
        return words[-1]
    if len(words) > 2 or words[-1].lower() in _STOP_WORDS or words[0].lower() in _STOP_WORDS:
        return ""
    return label


def _value(found: re.Match[str], unit: str) -> float | None:
    number = float(found["number"].replace(",", ""))
    if found["total"]:
        total = float(found["total"].replace(",", ""))
        return 100.0 * number / total if total else None  # 9823/10000 right ones: a percentage
    return number * _SECONDS.get(unit, 1.0)
