"""Layout of rows in JSON text, found from its beginning: the file's name says little about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from workers.data.reading.columns import is_conversation, is_prose

Kind = Literal["lines", "values", "array", "columns", "index", "split", "row"]

TEXTS: Final[Mapping[Kind, str]] = {
    "lines": "JSON Lines",
    "values": "JSON objects one after the other",
    "array": "a JSON array",
    "columns": "JSON, column by column",
    "index": "a JSON object of rows",
    "split": "JSON with the columns' names apart",
    "row": "one JSON object",
}
_TRAINING: Final = ("train", "training", "train_data")
_OTHER_SPLITS: Final = frozenset(("test", "testing", "valid", "validation", "val", "dev", "eval", "evaluation"))
_TEXT_KEYS: Final = frozenset(("text", "content", "body", "article", "document", "story", "markdown"))
_LINES: Final = 64
_MOST_DEPTH: Final = 4
# Objects of an object, alike and with lists or objects in them, that are rows: fewer are parts of one thing.
_MANY: Final = 8
_MOST_CUTS: Final = 20
_STEP: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[\[\]{},]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """The way rows are written as JSON.

    Attributes:
        kind: "lines" (one a line), "values" (one after the other), "array", "columns" (an object with an array or an
            object for each column), "index" (an object of rows), "split" (names and cells apart), "row" (one object).
        path: The keys above them.
        left_out: Keys beside them whose rows are not read: other splits.
    """

    kind: Kind
    path: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return TEXTS[self.kind] + (f" below “{'.'.join(self.path)}”" if self.path else "")


def find_json_layout(
    head: str, *, is_whole: bool, lines_expected: bool = False, is_sure: bool = True
) -> JsonLayout | None:
    """The layout of JSON text by its beginning `head`; None where it holds no rows.

    Args:
        head: Its beginning.
        is_whole: That is all of it.
        lines_expected: The file's name says that there is one row a line.
        is_sure: Its name says that it is JSON.
    """
    head = head.lstrip("\ufeff \t\r\n")
    lines = [line for line in head.split("\n") if line.strip()]
    complete = lines if is_whole else lines[:-1]
    rows = [_is_row(line) for line in complete[:_LINES]]
    if sum(rows) >= 2 and sum(rows) >= len(rows) / 2:
        return JsonLayout("lines")
    end = _first_end(head)
    if end is not None and head[end:].lstrip(" \t\r\n,")[:1] in ("{", "[", '"') and head[:1] in ("{", "["):
        between_commas = head[end:].lstrip()[:1] == ","
        return JsonLayout("lines" if lines_expected and any(rows) and not between_commas else "values")
    value = _completed(head)
    if value is None:
        broken = JsonLayout("lines") if lines_expected else JsonLayout("array") if head[:1] == "[" else None
        return broken if is_sure else None
    found = _in_value(value, is_whole, 0)
    if found is None or found.kind == "row":
        is_row = isinstance(value, dict) and (lines_expected or not is_whole)
        return JsonLayout("lines" if lines_expected else "values") if is_row else found
    return found


def _is_row(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict | str)
    except (ValueError, RecursionError):
        return False


def _first_end(head: str) -> int | None:
    try:
        return json.JSONDecoder().raw_decode(head)[1]
    except (ValueError, RecursionError):
        return None


def _completed(head: str) -> Any:
    """The value that begins there, cut to what is whole; None where it is not JSON."""
    end = _first_end(head)
    if end is not None:
        return json.loads(head[:end])
    closers: list[str] = []
    cuts: list[tuple[int, str]] = []
    for step in _STEP.finditer(head):
        token = step[0]
        if token in "[{":
            closers.append("]" if token == "[" else "}")
            cuts.append((step.end(), "".join(reversed(closers))))
        elif token in "]}" and closers:
            closers.pop()
            cuts.append((step.end(), "".join(reversed(closers))))
        elif token == ",":
            cuts.append((step.start(), "".join(reversed(closers))))
        elif step.end() == len(head):
            cuts.append((len(head.rstrip("\\")), '"' + "".join(reversed(closers))))  # within a text
    for cut, rest in reversed(cuts[-_MOST_CUTS:]):
        try:
            return json.loads(head[:cut] + rest)
        except (ValueError, RecursionError):
            continue
    return None


def _in_value(value: Any, is_whole: bool, depth: int) -> JsonLayout | None:
    if isinstance(value, list):
        return JsonLayout("array")
    if not isinstance(value, dict) or not value or depth > _MOST_DEPTH:
        return None
    if any(is_conversation(item) for item in value.values()) or "mapping" in value:
        return JsonLayout("row")
    if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        return JsonLayout("split")
    return _in_arrays(value) or _in_objects(value) or _in_container(value, is_whole, depth) or _as_row(value)


def _in_arrays(value: Mapping[str, Any]) -> JsonLayout | None:
    """Arrays of rows below keys, or an array for each column."""
    arrays = {key: item for key, item in value.items() if isinstance(item, list) and item}
    of_rows = [key for key, item in arrays.items() if isinstance(item[0], dict)]
    training = _training_key(arrays)
    if training is not None:
        return JsonLayout("array", (training,), tuple(key for key in arrays if key != training))
    if len(of_rows) == 1 and not any(key.lower() in _TEXT_KEYS and is_prose(value[key]) for key in value):
        return JsonLayout("array", (of_rows[0],))
    if len(of_rows) > 1:
        return JsonLayout("columns")
    texts = [key for key, item in arrays.items() if any(is_prose(text) for text in item[:20])]
    if arrays and (len(arrays) == len(value) or (texts and not any(is_prose(it) for it in value.values()))):
        return JsonLayout("columns")
    return None


def _training_key(items: Mapping[str, Any]) -> str | None:
    """The key of the training split, where the keys are splits."""
    training = [key for key in items if key.lower() in _TRAINING]
    others = [key for key in items if key.lower() not in _TRAINING]
    if len(training) == 1 and all(key.lower() in _OTHER_SPLITS for key in others):
        return training[0]
    return None


def _in_objects(value: Mapping[str, Any]) -> JsonLayout | None:
    """An object for each column with a value for each row, or an object or a text for each row."""
    if all(map(is_prose, value.values())) and (len(value) > _MANY or all(map(str.isdecimal, value))):
        return JsonLayout("index")
    if not all(isinstance(item, dict) and item for item in value.values()):
        return None
    inner = [set(item) for item in value.values()]
    if all(map(str.isdecimal, value)):
        return JsonLayout("index")
    if all(key.isdecimal() for keys in inner for key in keys):
        return JsonLayout("columns")
    first = next(iter(value.values()))
    alike = len(inner) > 1 and len(set.intersection(*inner)) * 2 >= max(map(len, inner))
    scalars = not any(isinstance(item, dict | list) for item in first.values())
    if alike and (scalars or len(inner) > _MANY):
        by_column = any(key.lower() in _TEXT_KEYS for key in value) and not any(
            key.lower() in _TEXT_KEYS for key in first
        )
        return JsonLayout("columns" if by_column else "index")
    return None


def _in_container(value: Mapping[str, Any], is_whole: bool, depth: int) -> JsonLayout | None:
    """The one object in which the rows are, beside plain values and objects without rows."""
    objects = {key: item for key, item in value.items() if isinstance(item, dict)}
    training = _training_key(objects) if len(objects) > 1 else None
    found = {
        key: below
        for key, item in objects.items()
        if training in (None, key)
        and (below := _in_value(item, is_whole, depth + 1)) is not None
        and below.kind != "row"
    }
    if len(found) != 1:
        return None
    (key, below), *_ = found.items()
    left_out = [] if training is None else [name for name in objects if name != key]
    return JsonLayout(below.kind, (key, *below.path), (*left_out, *below.left_out))


def _as_row(value: Mapping[str, Any]) -> JsonLayout | None:
    """An object that is a row by itself: one article a file, say."""

    def texts(item: Mapping[str, Any]) -> Iterator[bool]:
        for key, inner in item.items():
            yield key.lower() in _TEXT_KEYS and is_prose(inner)
            if isinstance(inner, dict):
                yield from texts(inner)

    return JsonLayout("row") if any(texts(value)) else None
