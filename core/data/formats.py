"""Data formats, told by a file's name: how rows are written down, and how the file is compressed."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from core.errors import DatasetError
from core.files.lfs_pointer import check_lfs_pointer
from core.held_files import open_binary

Form = Literal["text", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
Packing = Literal["", "gz", "zst"]

# The option by which recipes on text are told which column of a table it is.
TEXT_COLUMN: Final = "text_column"
# Where tokens are bytes, and where no token ends a document.
BETWEEN_DOCUMENTS: Final = "\n\n"
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
BEGINNING_BYTES: Final = 1 << 13
_SAME_LINES: Final = 5
_DAY: Final = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
_MONTH: Final = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_MAIL_HEADER: Final = "(from|to|subject|date|return-path|received|delivered-to|mime-version|message-id|x-[\\w-]+)"
# What people take for text, and what a program wrote around it: trained too, so it is named. The first that fits.
_MARKUP: Final = tuple(
    (what, re.compile(begins, re.IGNORECASE))
    for what, begins in (
        ("a Jupyter notebook, with outputs", r'\s*\{\s*"(cells|metadata|nbformat)":'),
        ("HTML", r"(\s|<!--[^>]*-->)*<(!doctype html|html|head|body)\b"),
        ("XML", r"\s*<((\?xml|mediawiki|rss|feed|tmx|tei)\b|(\w+>\s*<){1,3}\w+>[^<]*</\w+>)"),
        (
            "a database dump",
            r"(\s|--.*\n|/\*.*\n|(set|select) .*;[ \t\r]*\n)*"
            r"(create table|insert into|drop table|copy .* from stdin|pragma)\b",
        ),
        (
            "subtitles with times",
            r"webvtt\b|\[script info\]|\[\d\d:\d\d[.:]\d\d\]|\s*\d+\r?\n\d\d:\d\d:\d\d[,.]\d+ -->",
        ),
        ("a mailbox with headers", r"from \S+ .*\n[\w-]+: "),
        ("a mail with headers", rf"({_MAIL_HEADER}: .*\n([ \t].*\n)*){{2}}"),
        ("lines with dates and names", rf"\[?({_DAY})[ ,T]+\d{{1,2}}:\d\d|{_MONTH} [ \d]\d \d\d:\d\d:\d\d "),
        ("lines with times and names", r"\[?\d\d:\d\d(:\d\d)?\]? <[^>\n]+> "),
        ("rows as Python prints them", r"\[?\{'\w+': "),
        ("rows in YAML", r"- \w+: .*\n\s+\w+: "),
        ("front matter above the text", r"---[ \t]*\r?\n[\w-]+:.*\n(.*\n){0,60}?---[ \t]*\r?\n"),
        ("a patch", r"diff --git |--- \S.*\n\+\+\+ \S"),
        ("BibTeX", r"\s*@\w+\{[\w:./-]+,\s*\n"),
        ("labels and texts", r"__label__\S+ "),
        ("JavaScript with data", r"(const |var |let |window\.)[\w.$]+ *= *[\[{]"),
        ("a table in Markdown", r"\|.*\|\s*\n\|[ :|-]+\|"),
    )
)
_UNPACK: Final = "Unpack it and choose what was in it."
# Files that are no UTF-8 text though their names leave it open: how they begin, what they are, what to do.
_FOREIGN: Final[tuple[tuple[bytes, str, str], ...]] = (
    (rb"PK\x03\x04.{26}(\[Content_Types\]|word/|xl/|_rels/)", "an Office document (Word, Excel)",
     "Save it as plain text, or a table as CSV, UTF-8."),
    (rb"PK\x03\x04", "a ZIP archive", _UNPACK),
    (rb".{257}ustar", "a tar archive", _UNPACK),
    (rb"\x1f\x8b", "packed with gzip", "Let its name end in .gz."),
    (rb"\x28\xb5\x2f\xfd", "packed with Zstandard", "Let its name end in .zst."),
    (rb"BZh|\xfd7zXZ|7z\xbc\xaf|Rar!", "packed", _UNPACK),
    (rb"PAR1", "a Parquet table", "Let its name end in .parquet."),
    (rb"SQLite format 3", "an SQLite database", "Export a table as CSV."),
    (rb"%PDF-", "a PDF document", "Export its text."),
    (rb"\{\\rtf", "a document in RTF", "Save it as plain text, UTF-8."),
    (rb"\xff\xfe|\xfe\xff|[ -~\r\n\t]\0.\0", "UTF-16",
     "Save it as UTF-8 (in Notepad: Save as, Encoding)."),
)  # fmt: skip
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


def is_worth_a_look(path: Path, file_format: FileFormat) -> bool:
    """Whether more can be said of a file than that it is plain text: by its name, or by its beginning.

    Raises:
        OSError: It cannot be read.
    """
    if file_format.has_rows or file_format.packing:
        return True
    with open_binary(path) as file:
        data = file.read(BEGINNING_BYTES)
    if data.startswith(b"\xef\xbb\xbf") or find_markup(data.decode("utf-8", "replace")):
        return True
    beginning = data.lstrip()
    lines = [line for line in beginning.splitlines() if line.strip()][:_SAME_LINES]
    same = (len({line.count(mark) for line in lines}) == 1 and mark in lines[0] for mark in (b"\t", b";", b"|", b","))
    return file_format.is_open and (beginning[:1] in (b"{", b"[") or (bool(lines) and any(same)))


def find_markup(beginning: str) -> str:
    """What stands in a text besides words, by its beginning; empty: nothing that is known."""
    return next((what for what, begins in _MARKUP if begins.match(beginning)), "")


def check_text(name: str, data: bytes, *, is_beginning: bool) -> None:
    """Refuses part of a file's text that is none.

    Args:
        name: Whose it is, for the error.
        data: As it lies in the file, or as it was packed into it.
        is_beginning: It is the file's beginning, by which other kinds of files are known.

    Raises:
        DatasetError: Says what it is instead, as far as that is known.
    """
    if is_beginning:
        check_lfs_pointer(name, data)
    what, next_step = "a binary file (it holds NUL bytes)", "Choose a text file."
    known = (entry for entry in _FOREIGN if is_beginning and re.match(entry[0], data, re.DOTALL))
    if (found := next(known, None)) is not None:
        _, what, next_step = found
    elif b"\0" not in data:
        return
    raise DatasetError(f"{name} is {what}, not UTF-8 text.", next_step, title="The dataset is not text")


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
