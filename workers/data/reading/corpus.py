"""A dataset as a list of files with their layouts and text columns: looked at, not yet read."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from core.data.dataset import identify, is_hub, list_dataset
from core.data.formats import TEXT_COLUMN, FileFormat, find_markup
from core.data.hub import ALLOW_DOWNLOAD, DownloadNeededError, HubName, cached_info
from core.data.listing import ALL_FILES, AUTO
from core.errors import DatasetError, sentences
from workers.data.reading.columns import WHOLE, Columns
from workers.data.reading.hub import fetch
from workers.data.reading.layout import JSON, find_layout
from workers.data.reading.packed import is_damage
from workers.data.reading.pieces import OnRead, Piece, Source, read_error, source_pieces, source_rows
from workers.data.reading.row_counts import Bad, RowCounts
from workers.data.reading.shapes import TEXTS, Choice, Shape, choose_column, find_shape, likely_columns

MAX_BAD_ROWS: Final = "max_bad_rows"
# The options that recipes on text have in common.
OPTIONS: Final = (TEXT_COLUMN, MAX_BAD_ROWS, ALLOW_DOWNLOAD)
_SAMPLED_ROWS: Final = 200
_SAMPLED_FILES: Final = 200
_LISTED: Final = 8
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Corpus:
    """A dataset that has been looked at.

    Attributes:
        sources: Its files, in reading order.
        digest: Of the files' contents, names and layouts, and of the columns.
        column: The text column of most tables; empty for none.
        guessed: The user did not name it.
        remarks: Notes for the user on how it is read, a sentence each.
        held_out: The files of a validation split; they come last.
    """

    sources: tuple[Source, ...]
    digest: str
    column: str
    guessed: bool
    columns: Columns
    shape: Shape = TEXTS
    remarks: tuple[str, ...] = ()
    held_out: frozenset[Path] = frozenset()

    @property
    def size_bytes(self) -> int:
        return sum(source.size_bytes for source in self.sources)

    @property
    def form(self) -> str:
        """The files' forms for people: "JSON Lines", or "3 × plain text, 1 × CSV"."""
        forms = Counter(source.layout.text for source in self.sources)
        if len(forms) == 1:
            return next(iter(forms))
        return ", ".join(f"{count:,} × {form}" for form, count in forms.most_common())

    @property
    def text(self) -> str:
        """Form and column in one line: "JSON Lines, text column body (guessed; not used: id, title)"."""
        if not self.column:
            return self.form
        how = ["guessed" if self.guessed else "as requested"]
        around = self.column.rpartition(".")[0]
        beside = [name for name in self.columns.facts if around and name.rpartition(".")[0] == around]
        used = (self.column, self.column.partition(".")[0])
        unused = [name for name in (*self.columns.names, *beside) if name not in used]
        if unused:
            more = f" and {len(unused) - _LISTED} more" if len(unused) > _LISTED else ""
            how.append(f"not used: {', '.join(unused[:_LISTED])}{more}")
        shape = f" of {self.shape.text}" if self.shape.text else ""
        return f"{self.form}, text column {self.column}{shape} ({'; '.join(how)})"

    def report(self, counts: RowCounts, tokens: int) -> str:
        """Sentences on how it was read: form, documents, tokens, rows left out, remarks."""
        documents = f"{counts.documents:,} document{'' if counts.documents == 1 else 's'}"
        return sentences(
            f"{self.text}: {documents}, {tokens:,} tokens.", counts.left_out, counts.repeated, *self.remarks, ""
        )

    def without_validation(self) -> Corpus:
        """The training part alone."""
        if not self.held_out:
            return self
        sources = tuple(source for source in self.sources if source.path not in self.held_out)
        return replace(self, sources=sources, held_out=frozenset(), digest=f"{self.digest} without validation")

    def pieces(self, counts: RowCounts, on_read: OnRead = lambda _: None) -> Iterator[Piece]:
        """All documents, file after file; `on_read` gets the bytes read of all files now and then."""
        before, ended = 0, 0

        def on_source_read(read_bytes: int) -> None:
            on_read(before + read_bytes)

        for source in self.sources:
            if source.path in self.held_out and counts.training_documents is None:
                counts.training_documents = ended
            for piece in source_pieces(source, counts, on_source_read):
                ended += piece.ends
                yield piece
            before += source.size_bytes
            on_read(before)


def open_corpus(
    dataset: str, options: Mapping[str, Any], say: Callable[[str], None] = lambda _: None, rule: str = AUTO
) -> Corpus:
    """Look at a dataset: its files, their layouts and columns. Reads the start of each file.

    Args:
        dataset: As `--dataset-file` names it.
        options: The recipe's options, of which those in `OPTIONS` are used.
        say: Gets progress of slow work ("downloading 1.2 GB").
        rule: `RunConfig.data_files`.

    Raises:
        DatasetError: It is missing or unreadable, has no column of text or rows that no recipe trains, or it would
            have to be downloaded.
        ConfigError: The named column is in no file.
        PreflightError: A package is missing.
    """
    say("looking at the files")
    identity = "" if is_hub(dataset) else identify(dataset, rule).sha256
    corpus = look_at(dataset, options, rule, say)
    return replace(corpus, digest=_digest(identity or dataset, corpus.sources, by_stat=not identity))


def look_at(
    dataset: str, options: Mapping[str, Any], rule: str = AUTO, say: Callable[[str], None] = lambda _: None
) -> Corpus:
    """As `open_corpus`, but without a digest, for which all bytes would be read."""
    if is_hub(dataset):
        training, held_out, split = fetch(HubName.parse(dataset), options.get(ALLOW_DOWNLOAD) is True, say)
        held_out = [] if rule == ALL_FILES else held_out
        found = [(path, FileFormat("arrow")) for path in (*training, *held_out)]
        held = f"The split {split} is held out; nothing is taken from the training split."
        notes: tuple[str, ...] = (held,) if held_out else ()
    else:
        listing = list_dataset(dataset, rule)
        found, notes = list(listing.files), listing.notes
        held_out = [path for path, _ in listing.files[len(listing.training_files) :]]
    corpus = _looked_at(dataset, found, options)
    return replace(corpus, held_out=frozenset(held_out), remarks=(*notes, *corpus.remarks))


def look_at_what_is_here(dataset: str, options: Mapping[str, Any], rule: str = AUTO) -> Corpus | None:
    """As `look_at`, but never downloads; None for data that would have to be."""
    if is_hub(dataset) and cached_info(HubName.parse(dataset)) is None:
        return None
    try:
        return look_at(dataset, {**options, ALLOW_DOWNLOAD: False}, rule)
    except DownloadNeededError:  # another part of it is here
        return None


@dataclass(frozen=True, slots=True)
class _Looked:
    source: Source
    columns: Columns


def _looked_at(dataset: str, found: Sequence[tuple[Path, FileFormat]], options: Mapping[str, Any]) -> Corpus:
    wanted = str(options.get(TEXT_COLUMN) or "").strip()
    root = _root(dataset, [path for path, _ in found])
    looked = [_look(path, file_format, root, wanted, number) for number, (path, file_format) in enumerate(found)]
    _check_json_text(looked, wanted)
    together = Columns()
    for file in looked:
        together.merge(file.columns)
    remarks = [file.source.layout.remark for file in looked if file.source.layout.remark]
    if any(file.source.column for file in looked):
        remarks.append("Each row of a table is read as JSON, with all names and brackets.")
    elif wanted == WHOLE and any(form.has_rows for _, form in found):
        remarks.append("Rows are not told apart: the files are read as plain text, with all names and brackets.")
    chosen = Choice("")
    if wanted != WHOLE and any(file.source.layout.form != "text" for file in looked):
        chosen, looked, more = _with_columns(looked, together, wanted, dataset)
        remarks += more
    facts = together.facts.get(chosen.column)
    if facts is not None and (markup := find_markup("\n".join(facts.texts_kept))):
        remarks.append(f"The texts in column {chosen.column} hold more than words, which is trained too: {markup}.")
    remarks += _markup_remarks(looked)
    if len(remarks) > _LISTED:
        remarks = [*remarks[:_LISTED], f"There are {len(remarks) - _LISTED} more notes like these."]
    sources = tuple(file.source for file in looked)
    return Corpus(sources, "", chosen.column, not wanted, together, chosen.shape, tuple(remarks))


def _markup_remarks(looked: Sequence[_Looked]) -> list[str]:
    """A sentence for each kind of markup that is trained besides words."""
    files: dict[str, list[str]] = {}
    for file in looked:
        if file.source.layout.markup:
            files.setdefault(file.source.layout.markup, []).append(file.source.name)
    return [
        f"Read as plain text, with everything that stands in it: {what} ({_listed(names)})."
        for what, names in files.items()
    ]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _look(path: Path, file_format: FileFormat, root: Path, wanted: str, number: int) -> _Looked:
    """A file's layout, and the columns of its first rows."""
    try:
        layout = find_layout(path, file_format, wanted)
        name = path.name if path == root else path.relative_to(root).as_posix()
        column = WHOLE if wanted == WHOLE and layout.form != "text" else ""
        source = Source(path, name, file_format.packing, layout, column, path.stat().st_size)
        columns = Columns()
        if layout.form != "text" and number < _SAMPLED_FILES:
            columns = _sampled(source)
    except Exception as error:
        if not is_damage(error):  # then it is counted as bad when it is read
            raise read_error(path, error) from None
    return _Looked(source, columns)


def _sampled(source: Source) -> Columns:
    """The columns of a file's first rows; of a table that is written column by column, of the first of each."""
    columns = Columns()
    by_column = source.layout.json is not None and source.layout.json.kind == "columns"
    rows = (row for row in source_rows(source) if not isinstance(row, Bad))
    seen: Counter[str] = Counter()
    for row in rows if by_column else itertools.islice(rows, _SAMPLED_ROWS):
        seen.update(list(row) if by_column else ())
        if not by_column or max(seen[name] for name in row) <= _SAMPLED_ROWS:
            columns.add(row)
    return columns


def _check_json_text(looked: Sequence[_Looked], wanted: str) -> None:
    """Refuse JSON without rows where it is all there is."""
    if wanted != WHOLE and looked and all(file.source.layout.markup == JSON for file in looked):
        raise DatasetError(
            f"{looked[0].source.name} holds no rows: neither JSON objects one after the other nor an array of them.",
            f"Choose data with rows, or {WHOLE} as the text column to train on it as plain text, brackets included.",
            option=f"--set {TEXT_COLUMN}={WHOLE}",
            title="The data has no rows",
        )


def _with_columns(
    looked: Sequence[_Looked], together: Columns, wanted: str, dataset: str
) -> tuple[Choice, list[_Looked], list[str]]:
    """The tables with their text columns; those without a text are left out where others have one."""
    choices: dict[tuple[str, ...], Choice | None] = {}
    sizes: Counter[tuple[str, ...]] = Counter()
    for file in () if wanted else looked:
        names = file.columns.names
        sizes[names] += file.source.size_bytes
        if names and names not in choices:
            has_text = likely_columns(file.columns) or find_shape(file.columns).next_step
            choices[names] = choose_column(file.columns, "", file.source.name) if has_text else None
    usual = next((choice for names, _ in sizes.most_common() if (choice := choices.get(names))), None)
    if wanted or (usual is None and all(file.source.layout.form != "text" for file in looked)):
        usual = choose_column(together, wanted, dataset) if together.names or wanted else _no_rows(looked)
    chosen = usual or Choice("")
    kept: list[_Looked] = []
    remarks = [chosen.remark] if chosen.remark else []
    for file in looked:
        own = choices.get(file.columns.names, chosen)
        if file.source.layout.form == "text":
            kept.append(file)
        elif own is None:
            remarks.append(f"{file.source.name} is left out: none of its columns looks like text.")
        else:
            use = chosen if file.columns.has(chosen.column) else own
            if use is not chosen:
                remarks.append(sentences(f"{file.source.name}: text column {use.column} (guessed).", use.remark))
            kept.append(replace(file, source=replace(file.source, column=use.column)))
    return chosen, kept, remarks


def _no_rows(looked: Sequence[_Looked]) -> Choice:
    """Refuse tables without rows; damaged ones are left to the reader."""
    if all(_is_empty(file.source) for file in looked):
        raise DatasetError(
            f"{looked[0].source.name} has no rows.", "Choose data with text in it.", title="The dataset is empty"
        )
    return Choice("text")


def _is_empty(source: Source) -> bool:
    try:
        return next(iter(source_rows(source)), None) is None
    except Exception as error:
        if not is_damage(error):
            raise read_error(source.path, error) from None
        return False


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


def _digest(identity: str, sources: tuple[Source, ...], by_stat: bool) -> str:
    """A hash of contents (in `identity`) and layouts; the Hub's files count with size and time."""
    facts = [
        (source.name, source.layout.form, source.packing, source.column, *source.layout.key)
        + ((source.size_bytes, source.path.stat().st_mtime_ns) if by_stat else ())
        for source in sources
    ]
    return hashlib.sha256(json.dumps([identity, facts]).encode("utf-8")).hexdigest()


def texts(corpus: Corpus, limit_bytes: int) -> Iterator[str]:
    """Pieces of the training text up to a number of bytes, for a tokenizer; documents end with an empty line."""
    left = limit_bytes
    for piece in corpus.without_validation().pieces(RowCounts()):
        if left <= 0:
            return
        if piece.data:
            left -= len(piece.data)
            yield piece.data.decode("utf-8", "replace")
        if piece.ends:
            left -= 2
            yield "\n\n"
