"""A dataset as a list of files with their formats and text columns: looked at, not yet read."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.data.dataset import identify, is_hub, list_formats
from core.data.formats import TEXT_COLUMN, FileFormat, Form
from core.data.hub import ALLOW_DOWNLOAD, HubName
from core.errors import ConfigError, DatasetError
from workers.data.reading.columns import Columns
from workers.data.reading.hub import fetch
from workers.data.reading.json_stream import NotRowsError
from workers.data.reading.packed import is_damage
from workers.data.reading.pieces import OnRead, Piece, Source, read_error, source_pieces, source_rows
from workers.data.reading.row_counts import RowCounts
from workers.data.reading.rows import Bad

MAX_BAD_ROWS: Final = "max_bad_rows"
OPTIONS: Final = (TEXT_COLUMN, MAX_BAD_ROWS, ALLOW_DOWNLOAD)
"""The options that recipes on text have in common."""
WHOLE: Final = "*"
"""As text column: the files' text as it stands, names, brackets and all."""
_SAMPLED_ROWS: Final = 64
_SAMPLED_FILES: Final = 200


@dataclass(frozen=True, slots=True)
class Corpus:
    """A dataset that has been looked at.

    Attributes:
        sources: Its files, in the order in which they are read.
        digest: Of the files' contents, names and formats, and of the columns.
        column: The text column of most tables; empty when there are none.
        guessed: The user did not name it.
        columns: What a sample of rows shows of all columns.
    """

    sources: tuple[Source, ...]
    digest: str
    column: str
    guessed: bool
    columns: Columns

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(source.size_bytes for source in self.sources)

    def pieces(self, counts: RowCounts, on_read: OnRead = lambda _: None) -> Iterator[Piece]:
        """All documents, file after file; raises as `source_pieces`.

        Args:
            counts: Gets rows, documents, and what is wrong.
            on_read: Called now and then with the bytes that have been read of all files.
        """
        before = 0

        def on_source_read(read_bytes: int) -> None:
            on_read(before + read_bytes)

        for source in self.sources:
            yield from source_pieces(source, counts, on_source_read)
            before += source.size_bytes
            on_read(before)


def open_corpus(dataset: str, options: Mapping[str, Any], say: Callable[[str], None] = lambda _: None) -> Corpus:
    """Looks at a dataset: which files, which columns. Reads the start of each table.

    Args:
        dataset: As `--dataset-file` names it.
        options: The recipe's options, of which those in `OPTIONS` are used.
        say: Is told what takes long ("downloading 1.2 GB").

    Raises:
        DatasetError: It is missing or unreadable, no column holds text, or it would have to be downloaded.
        ConfigError: The column that was named is in no file.
        PreflightError: A package is missing.
    """
    wanted = str(options.get(TEXT_COLUMN) or "").strip()
    if is_hub(dataset):
        files = fetch(HubName.parse(dataset), options.get(ALLOW_DOWNLOAD) is True, say)
        found, identity = [(path, FileFormat("arrow")) for path in files], ""
    else:
        say("looking at the files")
        identity = identify(dataset).sha256
        found = list_formats(dataset)
    root = _root(dataset, [path for path, _ in found])
    sampled = _samples(found, wanted)
    together, column = _together(sampled, wanted)
    sources = tuple(
        Source(
            path=path,
            name=path.name if path == root else path.relative_to(root).as_posix(),
            form=form,
            packing=file_format.packing,
            column=_column_in(columns, column, wanted) if form != "text" else "",
            size_bytes=path.stat().st_size,
        )
        for (path, file_format), (form, columns) in zip(found, sampled, strict=True)
    )
    digest = _digest(identity or dataset, sources, by_stat=not identity)
    return Corpus(sources, digest, column, not wanted, together)


def find_column(dataset: str, options: Mapping[str, Any]) -> str:
    """The text column of a dataset's tables, from their first rows; empty where there are no tables.

    Args:
        dataset: Files of this machine, as `--dataset-file` names them.
        options: As in `open_corpus`.

    Raises:
        RankdeckError: As in `open_corpus`.
    """
    wanted = str(options.get(TEXT_COLUMN) or "").strip()
    return _together(_samples(list_formats(dataset), wanted), wanted)[1]


def _samples(found: list[tuple[Path, FileFormat]], wanted: str) -> list[tuple[Form, Columns]]:
    return [_sampled(path, file_format, wanted, number) for number, (path, file_format) in enumerate(found)]


def _together(sampled: list[tuple[Form, Columns]], wanted: str) -> tuple[Columns, str]:
    """All columns, and the one that is the text."""
    together = Columns()
    for _, columns in sampled:
        together.merge(columns)
    return together, _choose(wanted, together, any(form != "text" for form, _ in sampled))


def _root(dataset: str, paths: list[Path]) -> Path:
    if len(paths) == 1:
        return paths[0]
    named = Path(dataset).absolute()
    if named.is_dir():
        return named
    folders = [path.parent for path in paths]
    return next(
        folder for folder in (folders[0], *folders[0].parents) if all(path.is_relative_to(folder) for path in paths)
    )


def _sampled(path: Path, file_format: FileFormat, wanted: str, number: int) -> tuple[Form, Columns]:
    """How a file is read after all, and the columns of its first rows."""
    if not file_format.has_rows:
        return "text", Columns()
    if wanted == WHOLE and file_format.form not in ("parquet", "arrow"):
        return "text", Columns()
    if number >= _SAMPLED_FILES and file_format.form != "json":
        return file_format.form, Columns()
    columns = Columns()
    try:
        rows = source_rows(Source(path, path.name, file_format.form, file_format.packing))
        for row in itertools.islice((row for row in rows if not isinstance(row, Bad)), _SAMPLED_ROWS):
            columns.add(row)
    except NotRowsError:
        return "text", Columns()  # a settings file, say: its text is all there is to learn
    except Exception as error:
        if not is_damage(error):  # then it is counted as bad when it is read
            raise read_error(path, error) from None
    return file_format.form, columns


def _choose(wanted: str, columns: Columns, has_tables: bool) -> str:
    if wanted == WHOLE or not has_tables:
        return ""
    names = ", ".join(columns.names) or "none"
    if wanted:
        if columns.names and not columns.has(wanted):
            raise ConfigError(
                TEXT_COLUMN, f"No row that was looked at has a column {wanted!r}. The columns are: {names}.",
                f"Choose one of them, or {WHOLE} for the whole text of the files.",
            )  # fmt: skip
        return wanted
    guess = columns.guess
    if not guess:
        raise DatasetError(
            f"No column looks like text. The columns are: {names}.",
            f"Choose the text column, or {WHOLE} for the whole text of the files.",
            option=f"--set {TEXT_COLUMN}=NAME",
            title="Which column is the text?",
        )
    return guess


def _column_in(columns: Columns, column: str, wanted: str) -> str:
    """The column that is read in one file: where it lacks the others' and none was named, its own guess."""
    return column if wanted or not columns.names or columns.has(column) else columns.guess or column


def _digest(identity: str, sources: tuple[Source, ...], by_stat: bool) -> str:
    """Contents are in `identity`; files that are known by name only (the Hub's) count with size and time."""
    facts = [
        (source.name, source.form, source.packing, source.column)
        + ((source.size_bytes, source.path.stat().st_mtime_ns) if by_stat else ())
        for source in sources
    ]
    return hashlib.sha256(json.dumps([identity, facts]).encode("utf-8")).hexdigest()


def texts(corpus: Corpus, limit_bytes: int) -> Iterator[str]:
    """The text's pieces up to a number of bytes, for learning a tokenizer; documents end with an empty line."""
    left = limit_bytes
    for piece in corpus.pieces(RowCounts()):
        if left <= 0:
            return
        if piece.data:
            left -= len(piece.data)
            yield piece.data.decode("utf-8", "replace")
        if piece.ends:
            left -= 2
            yield "\n\n"
