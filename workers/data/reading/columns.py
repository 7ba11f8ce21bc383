"""Columns of a table: facts on each from a sample of rows, and a row's text."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

# What people call a column of text, the likeliest first.
NAMES: Final = (
    "text", "content", "document", "body", "article", "story", "passage", "markdown", "code", "completion",
    "response", "output", "answer", "message", "review", "comment", "sentence", "prompt", "instruction", "question",
    "abstract", "description", "summary", "value", "title",
)  # fmt: skip
# The column of rows that are a bare text, without a name.
VALUE: Final = "value"
# Under these names short texts are taken for texts too.
SURE_NAMES: Final = frozenset(
    (
        "text", "content", "body", "document", "article", "story", "passage", "markdown", "code", "message", "review",
        "comment", "sentence", "abstract",
    )
)  # fmt: skip
_NOT_TEXT: Final = re.compile(
    r"(.*[ _-])?(ids?|uuid|guid|url|uri|urls|link|links|href|e?mail|address|addr|street|city|country|location|place|"
    r"company|phone|number|date|time|"
    r"datetime|timestamp|created|updated|created_at|updated_at|path|file|filename|file_name|user|username|author|name|"
    r"names|label|labels|class|category|categories|tag|tags|lang|language|split|source|domain|license|hash|sha|md5|"
    r"error|score|rating|status|type|kind|level|logger|role|model)",
    re.IGNORECASE,
)
# Addresses, e-mail, numbers, ids, paths and dates.
_OPAQUE: Final = re.compile(
    r"[\w+.-]+://\S+|www\.\S+|[^\s@]+@[^\s@]+\.\w+|[-+]?[\d.,  ]+(e[-+]?\d+)?\s*[%€$£]?|[!-~]*\d[!-~]*|"
    r"[A-Za-z]:\\.*|(/[\w.-]+)+/?|"
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T,]+\d{1,2}:\d{2}.*)?|"
    r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .{0,20}\d{2}:\d{2}.{0,20}|"
    r"\d{1,2} [A-Za-z]{3,9}\.? \d{4}|[A-Za-z]{3,9}\.? \d{1,2}, \d{4}",
    re.IGNORECASE,
)
# What other programs write where there is no text.
_NO_VALUE: Final = frozenset(("nan", "none", "null", "<na>", "#n/a"))
_LONGEST_NO_VALUE: Final = 20
_WIDE: Final = re.compile(r"[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NAME_WEIGHT: Final = 4.0
_OTHER_TEXT: Final = 1.0
_EXAMPLE_CHARS: Final = 80
_LOOKED_AT_CHARS: Final = 2000
_PROSE_LENGTH: Final = 4
_DEPTH: Final = 3
_MOST_COLUMNS: Final = 500
_KEPT_TEXTS: Final = 20

ValueKind = Literal["text", "opaque", "number", "conversation", "texts", "numbers", "objects", "object"]


def is_no_value(value: object) -> bool:
    """Whether a value is empty, not finite, or a word for nothing."""
    if isinstance(value, str):
        return not value or value.isspace() or (len(value) < _LONGEST_NO_VALUE and value.strip().lower() in _NO_VALUE)
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def word_count(text: str) -> int:
    """Words in a text; in scripts without spaces, two characters count as one."""
    return max(len(text.split()), len(_WIDE.findall(text)) // 2)


def is_prose(value: object) -> bool:
    return isinstance(value, str) and word_count(value[:_LOOKED_AT_CHARS]) >= _PROSE_LENGTH and kind_of(value) == "text"


def is_conversation(value: object) -> bool:
    """Whether a value is a list of messages with speakers; also as the JSON text of one."""
    if isinstance(value, str):
        begins = value[:_LOOKED_AT_CHARS].lstrip()
        if not re.match(r"\[\s*\{\s*['\"]\w+['\"]\s*:", begins):
            return False
        return bool(re.search(r"['\"](role|from)['\"]\s*:", begins) and re.search(r"['\"](content|value)['\"]", begins))
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return False
    keys = set(value[0])
    return bool(keys & {"role", "from", "speaker", "user", "human", "agent"}) and bool(
        keys & {"content", "value", "text", "assistant", "gpt", "parts", "tool_calls", "utterance", "message"}
    )


def kind_of(value: object) -> ValueKind:
    if isinstance(value, bytes):
        value = _decoded(value)
    if is_conversation(value):
        return "conversation"
    if isinstance(value, str):
        short = value[:_LOOKED_AT_CHARS].strip()
        has_letters = any(map(str.isalpha, short))
        return "text" if has_letters and not _OPAQUE.fullmatch(short) else "opaque"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        first = next((item for item in value if item is not None), None)
        if isinstance(first, str):
            return "texts"
        return "numbers" if isinstance(first, int | float) else "objects"
    return "number"


def _decoded(value: bytes) -> str:
    """Text in bytes; empty where they are something else."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return ""


@dataclass(slots=True)
class ColumnFacts:
    """Facts on one column from a sample of rows.

    Attributes:
        rows: Sampled rows in which it has a value.
        kinds: Those rows by the value's kind.
        chars: Characters of all texts.
        length: Words of all texts.
        distinct: Different texts among them.
        example: The start of the first.
        texts_kept: The beginnings of the first ones.
    """

    rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    chars: int = 0
    length: int = 0
    distinct: set[int] = field(default_factory=set)
    example: str = ""
    texts_kept: list[str] = field(default_factory=list)

    def add(self, value: object) -> None:
        if isinstance(value, bytes):
            value = _decoded(value)
        if is_no_value(value):
            return
        kind = kind_of(value)
        self.rows += 1
        self.kinds[kind] += 1
        if isinstance(value, str) and kind in ("text", "opaque"):
            self.chars += len(value)
            self.length += word_count(value[:_LOOKED_AT_CHARS])
            self.distinct.add(hash(value))
            if len(self.texts_kept) < _KEPT_TEXTS:
                self.texts_kept.append(value[:_LOOKED_AT_CHARS])
            self.example = self.example or " ".join(value[: 2 * _EXAMPLE_CHARS].split())[:_EXAMPLE_CHARS]

    def merge(self, other: ColumnFacts) -> None:
        self.rows += other.rows
        self.kinds += other.kinds
        self.chars += other.chars
        self.length += other.length
        self.distinct |= other.distinct
        self.texts_kept += other.texts_kept[: _KEPT_TEXTS - len(self.texts_kept)]
        self.example = self.example or other.example

    @property
    def texts(self) -> int:
        """Rows whose value is a text and no address, date, id or number."""
        return self.kinds["text"]

    @property
    def kind(self) -> str:
        """The kind of most values; empty for none."""
        return self.kinds.most_common(1)[0][0] if self.kinds else ""

    @property
    def mean_chars(self) -> float:
        return self.chars / max(1, self.texts + self.kinds["opaque"])

    @property
    def mean_length(self) -> float:
        """Mean number of words of a text."""
        return self.length / max(1, self.texts + self.kinds["opaque"])

    @property
    def is_text(self) -> bool:
        """Whether most values are texts."""
        return self.texts > 0 and self.texts >= self.rows / 2

    @property
    def is_prose(self) -> bool:
        """Whether most values are texts of several words, and most differ."""
        varied = self.rows < 8 or len(self.distinct) * 4 >= self.rows
        return self.is_text and self.mean_length >= _PROSE_LENGTH and varied

    def score(self, name: str) -> float:
        """Likelihood that this is the text column; 0: none.

        Long texts that differ from row to row are likely; a usual name counts as much as sixteen times the length.
        """
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rpartition(".")[2]).lower()
        if not self.is_text and not (name == NAMES[0] and self.texts):
            return 0.0
        if (name not in SURE_NAMES or name in ("code", "message", "abstract")) and (
            not self.is_prose or _NOT_TEXT.fullmatch(name)
        ):
            return 0.0
        place = NAMES.index(name) if name in NAMES else len(NAMES)
        name_score = _NAME_WEIGHT * (1 - place / len(NAMES))
        return _OTHER_TEXT + name_score + math.log2(1 + self.mean_chars) * min(1.0, len(self.distinct) / self.texts)


@dataclass(slots=True)
class Columns:
    """The columns of a sample of rows, in order of appearance.

    Attributes:
        facts: By name; ``a.b`` is the value under ``b`` in the object ``a``.
        top: The names of whole columns.
    """

    facts: dict[str, ColumnFacts] = field(default_factory=dict)
    top: dict[str, None] = field(default_factory=dict)
    rows: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self.rows += 1
        for name, value in row.items():
            if len(self.top) < _MOST_COLUMNS:
                self.top[name] = None
            self._add(name, value, _DEPTH)

    def _add(self, name: str, value: object, depth: int) -> None:
        if name not in self.facts and len(self.facts) >= _MOST_COLUMNS:
            return
        self.facts.setdefault(name, ColumnFacts()).add(value)
        if isinstance(value, Mapping) and depth:
            for key, inner in value.items():
                self._add(f"{name}.{key}", inner, depth - 1)

    def merge(self, other: Columns) -> None:
        self.rows += other.rows
        self.top |= other.top
        for name, facts in other.facts.items():
            self.facts.setdefault(name, ColumnFacts()).merge(facts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.top)

    def has(self, column: str) -> bool:
        return column in self.top or column in self.facts or column.partition(".")[0] in self.top

    def as_list(self) -> list[dict[str, Any]]:
        shown = [name for name, facts in self.facts.items() if name in self.top or facts.texts]
        return [
            {
                "name": name,
                "text_share": round(facts.texts / facts.rows, 3) if facts.rows else 0.0,
                "mean_chars": round(facts.mean_chars, 1),
                "example": facts.example,
            }
            for name, facts in self.facts.items()
            if name in shown
        ]


_MISSING: Final = object()
# As text column: the files' text as it stands, names, brackets and all.
WHOLE: Final = "*"


def row_text(row: Mapping[str, Any], column: str) -> tuple[str, str]:
    """A row's text, and its problem (a kind of `row_counts.BAD_ROW_TEXTS`; empty for none).

    The texts in a list are joined with line ends: such a column is never guessed, so that a person has named it. Of a
    Parquet or Arrow file, which is not text, `WHOLE` is each row as JSON.
    """
    if column == WHOLE:
        return json.dumps(row, ensure_ascii=False, default=str), ""
    value = row.get(column, _MISSING)
    if value is _MISSING and "." in column:
        value = row
        for key in column.split("."):
            value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
    if value is _MISSING:
        return "", "missing_column"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = "\n".join(value)
    if is_no_value(value):
        return "", "empty"
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape"), ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value), ""
    return (value, "") if isinstance(value, str) else ("", "not_text")
