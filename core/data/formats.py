"""Data formats, told by a file's name: how rows are written down, and how the file is compressed."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from typing import Final, Literal

Form = Literal["text", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
Packing = Literal["", "gz", "zst"]

TEXT_COLUMN: Final = "text_column"
"""The option by which recipes on text are told which column of a table it is."""
_ENDINGS: Final[dict[str, Form]] = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
}
_PACKINGS: Final[dict[str, Packing]] = {"gz": "gz", "zst": "zst"}
_TEXT_NAME: Final = re.compile(
    r".+\.(txt|text|md|markdown|rst|tex|log|csv|tsv|jsonl?|ndjson|xml|html?|css|ya?ml|toml|ini|cfg|pyi?|ipynb|jsx?|tsx?"
    r"|java|kt|[ch]|cc|cpp|cxx|hpp|cuh?|cs|go|rs|rb|php|p[lm]|lua|r|jl|m|swift|scala|sh|bash|ps1|bat|sql|srt|vtt)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a data file is read.

    Attributes:
        form: How its rows are written down; "text" is one document without rows.
        packing: How the file as a whole is packed; empty: not at all.
    """

    form: Form
    packing: Packing = ""

    @property
    def is_plain_text(self) -> bool:
        """Its bytes are the text itself."""
        return self.form == "text" and not self.packing

    @property
    def is_readable_text(self) -> bool:
        """A person could read the file's own bytes: nothing packed, no binary format."""
        return not self.packing and self.form not in ("parquet", "arrow")

    @property
    def has_rows(self) -> bool:
        """It holds rows with columns, one of which is the text."""
        return self.form != "text"


def format_for(name: str) -> FileFormat:
    """The format that a file's name stands for; whatever is not known is text."""
    name, packing = _unpacked(name)
    return FileFormat(_ENDINGS.get(name.rpartition(".")[2].lower(), "text"), packing)


def is_data_name(name: str) -> bool:
    """Whether a file of a folder belongs to a dataset, judged by its name."""
    inner, packing = _unpacked(name)
    if inner.startswith("."):
        return False
    return bool(_TEXT_NAME.fullmatch(inner)) or (not packing and inner.lower().endswith(".parquet"))


def missing_package(form: FileFormat) -> str:
    """The package that reading this format needs and this Python lacks; empty when nothing is missing."""
    needed = form.form in ("parquet", "arrow") or (form.packing == "zst" and sys.version_info < (3, 14))
    return "pyarrow" if needed and importlib.util.find_spec("pyarrow") is None else ""


def _unpacked(name: str) -> tuple[str, Packing]:
    inner, _, last = name.rpartition(".")
    packing = _PACKINGS.get(last.lower(), "") if inner else ""
    return (inner, packing) if packing else (name, "")
