"""Row counts: rows read, bad rows with examples, and the limit of bad rows that the user accepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

from core.errors import ConfigError, DatasetError

MAX_EXAMPLES: Final = 5
_KNOWN_TEXTS: Final = 20_000
_SHOWN_BYTES: Final = 60
_CHECKSUM: Final = "\0"
_MANY: Final = 3
_SHOWN_TEXTS: Final = 3
_MANY_SHARE: Final = 0.01
# Kinds of bad rows, and what users read.
BAD_ROW_TEXTS: Final[Mapping[str, str]] = {
    "invalid_utf8": "not UTF-8",
    "broken": "broken",
    "no_names": "neither objects nor texts",
    "empty": "empty",
    "missing_column": "without the text column",
    "not_text": "no text in the text column",
    "too_long": "longer than 64 MiB",
    "cut_off": "cut off: the file ends in the middle",
    "kept": "not UTF-8 and kept as they are",
}


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that cannot be used: a kind of `BAD_ROW_TEXTS`, and its place in the file as text."""

    kind: str
    where: str


@dataclass(slots=True)
class RowCounts:
    """Counts of a dataset's rows, or of its start.

    Attributes:
        rows: Rows read, bad ones included; of a text file its lines.
        documents: Texts taken.
        bad: Bad rows by kind (`BAD_ROW_TEXTS`). They are left out, but for "kept", lines of text that are not UTF-8:
            bytes are tokens too.
        examples: Places of the first ones.
        training_documents: Documents before those of a validation split; None without one.
        headers: Rows of a table that repeat its header; they are taken.
        texts: The count of each text, by its beginning and a checksum; of the first 20,000 that differ.
    """

    rows: int = 0
    documents: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    training_documents: int | None = None
    headers: int = 0
    texts: Counter[str] = field(default_factory=Counter)

    def add_document(self, text: bytes) -> None:
        self.documents += 1
        text = text.strip()
        key = " ".join(text[:_SHOWN_BYTES].decode("utf-8", "ignore").split())
        key += f"…{_CHECKSUM}{crc32(text):x}" if len(text) > _SHOWN_BYTES else ""
        if key in self.texts or len(self.texts) < _KNOWN_TEXTS:
            self.texts[key] += 1

    def add_bad(self, kind: str, where: str) -> None:
        self.bad[kind] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{where}: {BAD_ROW_TEXTS[kind]}")

    @property
    def bad_rows(self) -> int:
        return self.bad.total()

    @property
    def damaged(self) -> int:
        """Bad rows that the limit applies to: not empty ones, unless most are, nor lines that are kept."""
        empty = self.bad["empty"]
        return self.bad_rows - self.bad["kept"] - (empty if 2 * empty <= self.rows else 0)

    @property
    def left_out(self) -> str:
        """A sentence: "12 rows are left out: 10 empty, 2 broken."; empty for none."""
        kinds = [(kind, count) for kind, count in self.bad.most_common() if kind != "kept"]
        if not kinds:
            return ""
        total = sum(count for _, count in kinds)
        listed = ", ".join(f"{count:,} {BAD_ROW_TEXTS.get(kind, kind)}" for kind, count in kinds)
        return f"{total:,} {'row is' if total == 1 else 'rows are'} left out: {listed}."

    @property
    def repeated(self) -> str:
        """Sentences on repeated headers, and on texts that many documents are, such as “[deleted]”; empty for none."""
        many = [f"{count:,} × “{text.partition(_CHECKSUM)[0]}”" for text, count in self._many.items()]
        same = f"Of {self.documents:,} documents, many are the same text: {', '.join(many)}." if many else ""
        rows = "One row repeats" if self.headers == 1 else f"{self.headers:,} rows repeat"
        again = f"{rows} the table's header, which is trained too; leave the header in the first line only."
        return " ".join(filter(None, (again if self.headers else "", same)))

    @property
    def _many(self) -> dict[str, int]:
        least = max(_MANY, _MANY_SHARE * self.documents)
        return {text: count for text, count in self.texts.most_common(_SHOWN_TEXTS) if count >= least}

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "documents": self.documents,
            "bad": dict(sorted(self.bad.items())),
            "examples": list(self.examples),
            "repeated": self._many,
            "headers": self.headers,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RowCounts:
        return cls(
            value["rows"],
            value["documents"],
            Counter(value["bad"]),
            list(value["examples"]),
            headers=value.get("headers", 0),
            texts=Counter(value.get("repeated")),
        )

    @property
    def summary(self) -> str:
        """The bad rows as text: "12 of 3,400 rows are bad: 10 empty, 2 broken"; empty for none."""
        if not self.bad_rows:
            return ""
        kinds = ", ".join(f"{count:,} {BAD_ROW_TEXTS.get(kind, kind)}" for kind, count in self.bad.most_common())
        return f"{self.bad_rows:,} of {self.rows:,} rows are bad: {kinds}"


@dataclass(frozen=True, slots=True)
class BadRowLimit:
    """The accepted number or share (0 to 1) of bad rows; None for any."""

    rows: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: object) -> BadRowLimit:
        """``""`` (no limit), ``"100"`` rows, or ``"1%"`` of them; raises `ConfigError` for anything else."""
        limit = str(text if text is not None else "").strip()
        if not limit:
            return cls()
        if re.fullmatch(r"\d+", limit):
            return cls(rows=int(limit))
        percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", limit)
        if percent is not None and float(percent[1]) <= 100:
            return cls(share=float(percent[1]) / 100)
        raise ConfigError(
            "max_bad_rows", f"{limit!r} is not a limit for bad rows.", 'Give a number of rows, or a share such as "1%".'
        )

    def check(self, counts: RowCounts) -> None:
        """Raise `DatasetError` for data with more bad rows."""
        allowed = self.rows if self.share is None else self.share * counts.rows
        if allowed is None or counts.damaged <= allowed:
            return
        limit = f"{self.rows:,}" if self.share is None else f"{100 * self.share:g} %"
        encoding = 2 * counts.bad["invalid_utf8"] > counts.damaged
        raise DatasetError(
            f"{counts.summary}; the limit is {limit}. The first: {'; '.join(counts.examples)}.",
            "Save the data as UTF-8, or allow more bad rows."
            if encoding
            else "Correct the data, choose another text column, or allow more bad rows.",
            title="Too many rows are bad",
            option="--set max_bad_rows=100%",
        )
