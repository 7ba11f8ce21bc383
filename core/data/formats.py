"""Data formats, told by a file's name: how rows are written down, and how the file is compressed."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from core.held_files import open_binary

Form = Literal["text", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
Packing = Literal["", "gz", "zst"]

# The option by which recipes on text are told which column of a table it is.
TEXT_COLUMN: Final = "text_column"
_ENDINGS: Final[dict[str, Form]] = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
}
_BINARY: Final = (".parquet", ".arrow", ".feather")
_OPEN_ENDINGS: Final = frozenset(("txt", "log"))
_LOOKED_AT_BYTES: Final = 1 << 13
_SAME_LINES: Final = 5
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
        is_open: The name leaves open whether text is one document, or rows as people keep them in .txt files too.
    """

    form: Form
    packing: Packing = ""
    is_open: bool = False

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
    inner, packing = _unpacked(name)
    ending = inner.rpartition(".")[2].lower()
    is_open = ending in _OPEN_ENDINGS or not is_data_name(name)
    form = _ENDINGS.get(ending, "text")
    return FileFormat(form, packing, is_open=form == "text" and is_open)


def may_hold_rows(path: Path, file_format: FileFormat) -> bool:
    """Whether a file is worth a closer look for rows: by its name, or by its first lines where the name is open.

    Raises:
        OSError: It cannot be read.
    """
    if not file_format.is_open:
        return file_format.has_rows
    if file_format.packing:
        return True
    with open_binary(path) as file:
        beginning = file.read(_LOOKED_AT_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in beginning.splitlines() if line.strip()][:_SAME_LINES]
    same = (len({line.count(mark) for line in lines}) == 1 and mark in lines[0] for mark in (b"\t", b";", b"|", b","))
    return beginning[:1] in (b"{", b"[") or (bool(lines) and any(same))


def is_data_name(name: str) -> bool:
    """Whether a file of a folder belongs to a dataset, judged by its name."""
    inner, packing = _unpacked(name)
    if inner.startswith("."):
        return False
    return bool(_TEXT_NAME.fullmatch(inner)) or (not packing and inner.lower().endswith(_BINARY))


def missing_package(form: FileFormat) -> str:
    """The package that reading this format needs and this Python lacks; empty when nothing is missing."""
    needed = form.form in ("parquet", "arrow") or (form.packing == "zst" and sys.version_info < (3, 14))
    return "pyarrow" if needed and importlib.util.find_spec("pyarrow") is None else ""


def _unpacked(name: str) -> tuple[str, Packing]:
    inner, _, last = name.rpartition(".")
    packing = _PACKINGS.get(last.lower(), "") if inner else ""
    return (inner, packing) if packing else (name, "")
