"""Data formats: rows and compression by a file's name, and by its beginning what else than plain text it holds."""

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
_TIME: Final = r"\d{1,2}:\d\d"
_MAIL_HEADER: Final = "(from|to|subject|date|return-path|received|delivered-to|mime-version|message-id|x-[\\w-]+)"
SETTINGS: Final = "names and values, as in settings"
PAGES: Final = ("HTML", "XML")
# What people take for text, and what a program wrote around it: trained too, so it is named. The first that fits: a
# text that begins so, or one of which this share of the lines holds such a thing.
_MARKUP: Final = tuple(
    (what, share, re.compile(pattern, re.IGNORECASE if not share else 0))
    for what, share, pattern in (
        ("a Jupyter notebook, with outputs", 0, r'\s*\{\s*"(cells|metadata|nbformat)":'),
        (PAGES[0], 0, r"(\s|<!--[^>]*-->)*<(!doctype html|html|head|body)\b"),
        (PAGES[1], 0, r"\s*<((\?xml|mediawiki|rss|feed|tmx|tei|svg|sec-document)\b|(\w+>\s*<){1,3}\w+>[^<]*</\w+>)"),
        ("nothing but spaces and empty lines", 0, r"\s+\Z"),
        ("a web archive with headers", 0, r"WARC/\d"),
        ("a database dump", 0,
         r"(\s|--.*\n|/\*.*\n|(set|select) .*;[ \t\r]*\n)*"
         r"(create table|insert into|drop table|copy .* from stdin|pragma)\b"),
        ("subtitles with times", 0,
         r"webvtt\b|\[script info\]|\[\d\d:\d\d[.:]\d\d\]|\s*\d+\r?\n\d\d:\d\d:\d\d[,.]\d+ -->"),
        ("a mailbox with headers", 0, r"from \S+ .*\n[\w-]+: "),
        ("a mail with headers", 0, rf"({_MAIL_HEADER}: .*\n([ \t].*\n)*){{2}}"),
        ("rows as Python prints them", 0, r"\[?\{'\w+': "),
        ("JSON", 0, r'(\s|//.*\n)*[\[{]\s*(\{\s*)?"[^"\n]*"\s*:'),
        ("rows in YAML", 0, r"- \w+: .*\n\s+\w+: |(.*\n){0,9}- - \w"),
        ("front matter above the text", 0, r"---[ \t]*\r?\n[\w-]+:.*\n(.*\n){0,60}?---[ \t]*\r?\n"),
        ("a patch", 0, r"diff --git |--- \S.*\n\+\+\+ \S"),
        ("BibTeX", 0, r"\s*@\w+\{[\w:./-]+,\s*\n"),
        ("JavaScript with data", 0, r"(const |var |let |window\.)[\w.$]+ *= *[\[{]"),
        ("a table in Markdown", 0, r"\|.*\|\s*\n\|[ :|-]+\|"),
        ("Project Gutenberg's preamble and license", 0, r"[\s*]*(\w+ ){0,3}project gutenberg"),
        ("special tokens, spelled out", 0.01,
         r"<\|\w+\|>|\[/?(INST|MASK|SEP|CLS|PAD|UNK)\]|</?s>|<(start|end)_of_turn>|__eo[ut]__|\w@@ |\+{3}\$\+{3}"),
        ("translations with their keys", 0.3, "^msg(id|str)\\b"),
        ("labels and texts", 0.5, r"^__label__\S+ "),
        ("errors of programs, with places in their code", 0.2,
         r"^Traceback \(most recent call last\):|^\s+File \".+\", line \d+|^\s+at \S+ ?\(.*\)$|"
         r"^\S*(Error|Exception|Warning)(: .*)?$"),
        ("program code, such as SQL, CSS or Python", 0.4,
         r"[{}]\s*$|[=():].*;\s*$|^\s*(//|/\*|#include|import \w+|from \S+ import|def \w+\(|class \w+[(:])|"
         r"^\s*(SELECT|FROM|WHERE|(LEFT |INNER )?JOIN|(GROUP|ORDER) BY|UPDATE|SET|DELETE|WITH|CREATE|ALTER)\b"
         r"(?! [a-z]+ [a-z]+ [a-z]+ [a-z]+)|^\s*(select|with) .+|^\s*(from|where|group by|order by) [\w.]+\W*"
         r"( = .*)?$|^\s*(if|elif|else|for|while|return|try|except)\b.*[:)\]]\s*$"),
        ("colors of a terminal", 0.1, "\x1b\\["),
        ("letters that were decoded wrongly, such as Ã¼", 0.2, "Ã[\x80-¿]|â€|\ufffd"),
        ("line ends and other characters spelled out, such as \\n", 0.2,
         r"\\n(?![a-z])|\\r\\n|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\\""),
        ("bytes as Python prints them", 0.5, "^b['\"]"),
        ("wiki markup", 0.3, r"\[\[[^\[\]\n]+\]\]|\{\{[^{}\n]+\}\}|'{3}"),
        ("HTML or XML tags", 0.2, r"</[a-zA-Z][\w:]*>|<[a-zA-Z][\w:]*\s+[\w:-]+=[^<>]*>|<(br|p|hr|li)\s*/?>"),
        ("LaTeX", 0.3, r"\\[a-zA-Z]{2,}\b"),
        ("long strings without spaces, such as sequences or encoded data", 0.5, r"[A-Za-z0-9+/=_*-]{50,}"),
        ("words with tags, a word in each line", 0.7, r"^\S+([ \t]+([A-Z]{1,5}\$?(-[A-Z]+)?|_|[.,:]))+\s*$"),
        ("words with tags", 0.7, r"^(\S+[/_][A-Z]{1,5}\$?(\s|$)){3,}|(\([A-Z$-]+ [^()\s]+\).*){2}"),
        ("lines with dates or times", 0.2,
         rf"^.{{0,30}}(\b{_DAY}[ ,T]+{_TIME}|\b{_TIME}:\d\d|\b\d{{4}}-\d\d-\d\d\b)|^\W?{_TIME}\b|{_TIME} [AP]M$|"
         rf"^[A-Z][a-z]{{2}} [ \d]\d {_TIME}|^.{{0,20}}\b(INFO|WARNING|WARN|ERROR|DEBUG)\b"),
        (SETTINGS, 0.9,
         r"^\s*([\w.;-]+\s*=.*|[\w.;-]+:(\s+\S{1,30}){0,3}|[A-Z][A-Z0-9;-]+:\S.*|[A-Z][A-Z0-9]  - .*|\[[^\]]+\]|#.*|"
         r"-\s+\S{1,30})\s*$"),
        ("one word in each line", 0.9, "^[!-~À-ɏ]{1,30}$"),
        ("lines that begin with numbers", 0.8, r"^\W{0,2}\d"),
    )
)  # fmt: skip
# Of a text that is none of these, the least share of characters that belong to words.
_LEAST_PROSE: Final = 0.5
_LITTLE_PROSE: Final = "more numbers and signs than words"
_WORD: Final = re.compile(
    r"(?<!\S)[\"'(*_“‘«¿¡\[]*[^\W\d_]+(?:[-'’][^\W\d_]+)*[\])*_.,;:!?…”’\"'»]*(?!\S)|[^\x00-\x7f]+"
)
_FEWEST: Final = 2
_SHOWN_BYTES: Final = 60
_UNPACK: Final = "Unpack it and choose what was in it."
# Files that are no UTF-8 text though their names leave it open: how they begin, what they are, what to do.
_FOREIGN: Final[tuple[tuple[bytes, str, str], ...]] = (
    (rb"PK\x03\x04.{26}(\[Content_Types\]|word/|xl/|_rels/|mimetype)|\xd0\xcf\x11\xe0",
     "an Office document or an e-book (Word, Excel, OpenDocument, EPUB)",
     "Save it as plain text, or a table as CSV, UTF-8."),
    (rb"PK\x03\x04", "a ZIP archive", _UNPACK),
    (rb".{257}ustar", "a tar archive", _UNPACK),
    (rb"\x1f\x8b", "packed with gzip", "Unpack it, or let its name end in .gz."),
    (rb"\x28\xb5\x2f\xfd", "packed with Zstandard", "Unpack it, or let its name end in .zst."),
    (rb"BZh|\xfd7zXZ|7z\xbc\xaf|Rar!", "packed", _UNPACK),
    (rb"PAR1", "a Parquet table", "Let its name end in .parquet."),
    (rb"SQLite format 3", "an SQLite database", "Export a table as CSV."),
    (rb"%PDF-", "a PDF document", "Export its text."),
    (rb"\{\\rtf", "a document in RTF", "Save it as plain text, UTF-8."),
    (rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[ -~\r\n\t]\0.\0", "UTF-16 or UTF-32",
     "Save it as UTF-8 (in Notepad: Save as, Encoding)."),
)  # fmt: skip
_PACKINGS: Final[dict[str, Packing]] = {"gz": "gz", "zst": "zst"}
_CODE: Final = (
    r"css|sql|pyi?|jsx?|tsx?|java|kt|[ch]|cc|cpp|cxx|hpp|cuh?|cs|go|rs|rb|php|p[lm]|lua|r|jl|m|swift|scala|sh|bash|ps1|bat|"
    "tex"
)
_TEXT_NAME: Final = re.compile(
    r".+\.(txt|text|md|markdown|rst|log|csv|tsv|jsonl?|ndjson|xml|html?|ya?ml|toml|ini|cfg|ipynb|srt|vtt|"
    rf"{_CODE})",
    re.IGNORECASE,
)
_CODE_NAME: Final = re.compile(rf".+\.({_CODE})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A data file's format.

    Attributes:
        form: The rows' form; "text" is one document without rows.
        packing: The compression of the whole file; empty for none.
        is_open: The name leaves open whether text is one document, or rows as people keep them in .txt files too.
    """

    form: Form
    packing: Packing = ""
    is_open: bool = False

    @property
    def is_plain_text(self) -> bool:
        return self.form == "text" and not self.packing

    @property
    def is_readable_text(self) -> bool:
        """Whether the file's own bytes are text: nothing packed, no binary format."""
        return not self.packing and self.form not in ("parquet", "arrow")

    @property
    def has_rows(self) -> bool:
        return self.form != "text"


def format_for(name: str) -> FileFormat:
    """The format that a file's name stands for; text for unknown ones."""
    inner, packing = _unpacked(name)
    ending = inner.rpartition(".")[2].lower()
    is_open = ending in _OPEN_ENDINGS or not is_data_name(name)
    form = _ENDINGS.get(ending, "text")
    return FileFormat(form, packing, is_open=form == "text" and is_open)


def is_worth_a_look(path: Path, file_format: FileFormat) -> bool:
    """Whether more can be said of a file than that it is plain text: by its name, or by its beginning."""
    if file_format.has_rows or file_format.packing:
        return True
    with open_binary(path) as file:
        data = file.read(BEGINNING_BYTES)
    if data.startswith(b"\xef\xbb\xbf") or find_markup(data.decode("utf-8", "replace"), path.name):
        return True
    beginning = data.lstrip()
    lines = [line for line in beginning.splitlines() if line.strip()][:_SAME_LINES]
    same = (len({line.count(mark) for line in lines}) == 1 and mark in lines[0] for mark in (b"\t", b";", b"|", b","))
    return file_format.is_open and (beginning[:1] in (b"{", b"[") or (bool(lines) and any(same)))


def find_markup(beginning: str, name: str = "") -> str:
    """The content of a text besides words, by its beginning; empty for none that is known.

    `name` is its file's: in source code, signs and settings are expected.
    """
    is_code = is_code_name(name)
    lines = [] if is_code else [line for line in beginning.splitlines() if line.strip()]
    for what, share, pattern in _MARKUP:
        if not share and pattern.match(beginning):
            return what
        if share and sum(pattern.search(line) is not None for line in lines) >= max(_FEWEST, share * len(lines)):
            return what
    characters = sum(map(len, beginning.split()))
    prose = sum(len(found[0]) for found in _WORD.finditer(beginning))
    return _LITTLE_PROSE if not is_code and prose < _LEAST_PROSE * characters else ""


def check_text(name: str, data: bytes, *, is_beginning: bool) -> None:
    """Raise `DatasetError` for bytes of a file, packed or not, that are no text; say what they are if known."""
    if is_beginning:
        check_lfs_pointer(name, data)
    what, next_step = "a binary file (it holds NUL bytes)", "Choose a text file."
    known = (entry for entry in _FOREIGN if is_beginning and re.match(entry[0], data, re.DOTALL))
    if (found := next(known, None)) is not None:
        _, what, next_step = found
    elif b"\0" not in data:
        return
    raise DatasetError(f"{name} is {what}, not UTF-8 text.", next_step, title="The dataset is not text")


def check_table(name: str, form: Form, beginning: bytes) -> None:
    """Refuse files that are no Parquet or Arrow table though their names say so, such as error pages."""
    check_lfs_pointer(name, beginning)
    shown = " ".join(beginning[:_SHOWN_BYTES].decode("utf-8", "replace").split())
    if shown.isprintable() if form == "arrow" else not beginning.startswith(b"PAR"):
        begins = f" It begins with “{shown}”." if shown.isprintable() else ""
        raise DatasetError(
            f"{name} is not a {'Parquet' if form == 'parquet' else 'Arrow'} table.{begins}",
            "Download or export it again, or let its name end as what it is.",
            title="The dataset is not a table",
        )


def is_data_name(name: str) -> bool:
    """Whether a file of a folder belongs to a dataset, judged by its name."""
    inner, packing = _unpacked(name)
    if inner.startswith("."):
        return False
    return bool(_TEXT_NAME.fullmatch(inner)) or (not packing and inner.lower().endswith(_BINARY))


def is_code_name(name: str) -> bool:
    return bool(_CODE_NAME.fullmatch(name))


def missing_package(form: FileFormat) -> str:
    """The package that reading this format needs and this Python lacks; empty for none."""
    needed = form.form in ("parquet", "arrow") or (form.packing == "zst" and sys.version_info < (3, 14))
    return "pyarrow" if needed and importlib.util.find_spec("pyarrow") is None else ""


def _unpacked(name: str) -> tuple[str, Packing]:
    inner, _, last = name.rpartition(".")
    packing = _PACKINGS.get(last.lower(), "") if inner else ""
    return (inner, packing) if packing else (name, "")
