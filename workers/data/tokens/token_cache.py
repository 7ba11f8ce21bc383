"""Datasets as tokens on disk, made once and shared by every run and rank that reads the same text in the same way.

A folder of the cache is named by a hash of the data, the way it is read, and the tokenizer. In it ``tokens.bin`` holds
the ids, ``ends.bin`` where each document ends, and ``index.json``, written last, what they are. While it is made,
finished parts lie in ``parts``: after a kill only the parts that are missing are made. One process makes it; others
wait for its lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from core.errors import DatasetError, PreflightError, RankdeckError, RunBusyError
from core.fault_points import reach
from core.files.atomic import explain, fill_atomic, read_json, replace_with_retry, write_atomic
from core.processes.lock import RunLock
from workers.data.reading.corpus import Corpus
from workers.data.reading.parts import about_how_many, cut
from workers.data.reading.pieces import MAX_LINE_BYTES, PIECE_BYTES, Part
from workers.data.reading.row_counts import RowCounts
from workers.data.tokens.old_tokens import mark_used, remove_unused
from workers.data.tokens.part_tokens import ENDS_TYPE, found_part, write_part
from workers.data.tokens.pool import PartPool, process_count
from workers.data.tokens.tokenizer_spec import TokenizerSpec, token_type

FORMAT: Final = "rankdeck-tokens"
VERSION: Final = 1
INDEX: Final = "index.json"
_IN_PROCESS_BYTES: Final = 16 << 20
"""Less than this is not worth starting processes for."""
_COPY_BYTES: Final = 1 << 22
_LOCK_PAUSE_S: Final = 0.5

Progress = Callable[[str], None]
"""Is told what is being done ("tokenising 43 %"), at least twice a second while it lasts; may raise to end it."""


@dataclass(frozen=True, slots=True)
class TokenData:
    """A dataset as tokens.

    Attributes:
        folder: Its folder in the cache.
        tokens: How many there are.
        documents: How many documents they are.
        vocab_size: Of the tokenizer.
        counts: Rows, and what was wrong with them.
        reused: It was there already.
    """

    folder: Path
    tokens: int
    documents: int
    vocab_size: int
    counts: RowCounts
    reused: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """Plain values, for an event and a preview."""
        counts = self.counts.as_dict()
        return {"tokens": self.tokens, "bad_rows": self.counts.bad_rows, **counts, "reused": self.reused}

    @property
    def info(self) -> dict[str, Any]:
        """What `PreparedData.info` holds for ranks and window."""
        return {
            "tokens": self.tokens,
            "documents": self.documents,
            "vocab_size": self.vocab_size,
            "rows": self.counts.rows,
            "bad_rows": self.counts.bad_rows,
            "token_cache": str(self.folder),
        }

    def open(self) -> np.memmap[Any, Any]:
        """The ids, shape (tokens,), read-only, mapped into memory: a page is read when it is used."""
        return open_tokens(self.folder, self.vocab_size)

    def ends(self) -> np.memmap[Any, Any]:
        """Where each document ends, shape (documents,): the number of tokens up to its end, separator included."""
        return open_ends(self.folder)


def open_tokens(folder: Path, vocab_size: int) -> np.memmap[Any, Any]:
    """The ids in a folder of the cache, mapped into memory."""
    mark_used(folder / INDEX)
    return np.memmap(folder / "tokens.bin", token_type(vocab_size), mode="r")


def open_ends(folder: Path) -> np.memmap[Any, Any]:
    """Where each document in a folder of the cache ends, mapped into memory."""
    return np.memmap(folder / "ends.bin", ENDS_TYPE, mode="r")


def is_whole(folder: Path) -> bool:
    """Whether a folder of the cache is there, as it was made."""
    return _found(folder) is not None


def found_tokens(corpus: Corpus, tokenizer: TokenizerSpec, cache: Path) -> TokenData | None:
    """What was made before, or None."""
    return _found(cache / _key(corpus, tokenizer))


def tokenise(
    corpus: Corpus,
    tokenizer: TokenizerSpec,
    cache: Path,
    progress: Progress = lambda _: None,
    processes: int | None = None,
) -> TokenData:
    """The dataset's tokens: found in the cache, or made.

    Args:
        corpus: The dataset.
        tokenizer: How it is tokenised.
        cache: The cache's folder (`core.paths.token_cache_dir`).
        progress: See `Progress`.
        processes: How many to use; None: as many as cores and memory allow; 1: none but this.

    Raises:
        DatasetError: A file cannot be read, or there is no text.
        PreflightError: The disk is full or refuses, or a package is missing.
        TokenisingError: A process died.
    """
    folder = cache / _key(corpus, tokenizer)
    found = _found(folder)
    if found is not None:
        return found
    try:
        (folder / "parts").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain(error, f"{folder} could not be made") from error
    with _locked(folder, progress):
        data = _found(folder) or _make(corpus, tokenizer, folder, progress, processes)
    remove_unused(cache, INDEX)
    return data


def _key(corpus: Corpus, tokenizer: TokenizerSpec) -> str:
    facts = [VERSION, corpus.digest, tokenizer.key, PIECE_BYTES, MAX_LINE_BYTES]
    return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()[:32]


def _found(folder: Path) -> TokenData | None:
    """What lies in a folder of the cache; None when it was not finished or is damaged."""
    try:
        index = read_json(folder / INDEX)
        if index["format"] != FORMAT or index["version"] != VERSION:
            return None
        data = TokenData(
            folder,
            index["tokens"],
            index["documents"],
            index["vocab_size"],
            RowCounts.from_dict(index["counts"]),
            reused=True,
        )
        item_bytes = token_type(data.vocab_size).itemsize
        whole = (folder / "tokens.bin").stat().st_size == data.tokens * item_bytes
        whole = whole and (folder / "ends.bin").stat().st_size == data.documents * ENDS_TYPE.itemsize
    except (RankdeckError, OSError, KeyError, TypeError):
        return None
    return data if whole else None


def _locked(folder: Path, progress: Progress) -> RunLock:
    """The folder's lock; another process that makes the same tokens is waited for."""
    while True:
        try:
            return RunLock(folder / "making.lock")
        except RunBusyError:
            progress("waiting for another run that tokenises the same data")
            time.sleep(_LOCK_PAUSE_S)


def _make(
    corpus: Corpus, tokenizer: TokenizerSpec, folder: Path, progress: Progress, processes: int | None
) -> TokenData:
    encoder = tokenizer.open()
    _check_space(corpus, folder, token_type(encoder.vocab_size).itemsize)
    work = _Work(corpus, folder / "parts", progress)
    count = processes or process_count(about_how_many(corpus.sources))
    if count > 1 and corpus.size_bytes > _IN_PROCESS_BYTES:
        with PartPool(count, tokenizer) as pool:
            pool.write(work.missing(), work.on_progress)
    else:
        for number, part, out in work.missing():
            write_part(part, encoder, out, lambda read, number=number: work.on_progress(number, read))  # type: ignore[misc]
            work.on_progress(number, None)
            reach("part_written")
    return _put_together(work, folder, encoder.vocab_size, progress)


class _Work:
    """The parts of a dataset as they become known, which of them are made, and how much of all that is.

    Args:
        corpus: The dataset.
        folder: Where parts are kept until they are put together.
        progress: See `Progress`.

    Attributes:
        outs: The common start of each part's files, in the order of their tokens.
        unreadable: Packed files that are cut off, as bad rows.
    """

    def __init__(self, corpus: Corpus, folder: Path, progress: Progress) -> None:
        self.outs: list[Path] = []
        self.unreadable = RowCounts()
        self.files = len(corpus.sources)
        self._sources = corpus.sources
        self._folder = folder
        self._progress = progress
        self._size = max(1, corpus.size_bytes)
        self._done = 0
        self._begun: dict[int, Part] = {}
        self._read: dict[int, float] = {}

    def missing(self) -> Iterator[tuple[int, Part, Path]]:
        """The parts that are to be made, with their numbers and where they go.

        Raises:
            DatasetError, PreflightError: See `workers.data.reading.parts.cut`.
        """
        for number, part in enumerate(cut(self._sources, self._folder, self.unreadable, self._say)):
            out = self._folder / f"{number:06d}"
            self.outs.append(out)
            if found_part(part, out) is not None:
                self._done += part.size_bytes
                part.remove_unpacked()
                continue
            self._begun[number] = part
            self._say()
            yield number, part, out
        self._say()

    def on_progress(self, number: int, read: int | None) -> None:
        """Takes how many bytes of a part have been read, None when it is made; -1 stands for none."""
        part = self._begun.get(number)
        if part is not None and read is None:
            self._done += part.size_bytes
            self._read.pop(number, None)
            del self._begun[number]
            part.remove_unpacked()
        elif part is not None and read is not None:
            length = part.stop - part.start if part.unpacked and part.stop is not None else part.size_bytes
            self._read[number] = part.size_bytes * min(1.0, read / max(1, length))
        self._say()

    def _say(self) -> None:
        self._progress(f"tokenising {int(100 * (self._done + sum(self._read.values())) // self._size)} %")


def _check_space(corpus: Corpus, folder: Path, item_bytes: int) -> None:
    """Refuses a disk that cannot hold the tokens, as far as can be told from the files' sizes.

    Raises:
        PreflightError: It is too full.
    """
    # Words of several bytes become a token of two: about half the text's size. Packed text is three times its file.
    per_byte = 1.0 if item_bytes == 1 else item_bytes / 3
    needed = 2 * sum(per_byte * source.size_bytes * (3 if source.packing else 1) for source in corpus.sources)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise PreflightError(
            f"The tokens need about {needed / 1e9:.1f} GB in {folder.parent}, and {free / 1e9:.1f} GB are free there.",
            "Free some space, or set RANKDECK_HOME to another drive.",
            title="The disk is too full",
        )


def _put_together(work: _Work, folder: Path, vocab_size: int, progress: Progress) -> TokenData:
    """All parts as one file, and the index; then the parts are removed.

    Raises:
        DatasetError: There is no text in them.
    """
    progress("merging the tokens")
    outs = work.outs
    records = [read_json(out.with_suffix(".json")) for out in outs]
    counts = RowCounts()
    for record in records:
        counts.merge(RowCounts.from_dict(record["counts"]))
    counts.merge(work.unreadable)
    tokens = sum(record["tokens"] for record in records)
    if not tokens:
        raise _nothing(counts)
    _join_tokens(outs, folder / "tokens.bin", progress)
    _join_ends(outs, records, folder / "ends.bin")
    documents = sum(record["documents"] for record in records)
    index = {
        "format": FORMAT, "version": VERSION, "tokens": tokens, "documents": documents, "vocab_size": vocab_size,
        "counts": counts.as_dict(), "files": work.files,
    }  # fmt: skip
    reach("before_index")
    write_atomic(folder / INDEX, json.dumps(index, ensure_ascii=False, indent=1) + "\n")
    with contextlib.suppress(OSError):  # a scanner holds one: it stays there and does no harm
        shutil.rmtree(folder / "parts")
    return TokenData(folder, tokens, documents, vocab_size, counts)


def _join_tokens(outs: Sequence[Path], target: Path, progress: Progress) -> None:
    if len(outs) == 1:
        source = outs[0].with_suffix(".tokens")
        with contextlib.suppress(OSError):
            target.with_suffix(".new").unlink(missing_ok=True)
        try:
            with source.open("r+b") as file:
                os.fsync(file.fileno())
            os.link(source, target.with_suffix(".new"))  # the part stays until the index is written
            replace_with_retry(target.with_suffix(".new"), target)
            return
        except OSError:
            target.with_suffix(".new").unlink(missing_ok=True)  # a drive without links: it is copied

    def fill(file: IO[bytes]) -> None:
        for out in outs:
            with out.with_suffix(".tokens").open("rb") as part:
                while block := part.read(_COPY_BYTES):
                    file.write(block)
            progress("merging the tokens")

    fill_atomic(target, fill)


def _join_ends(outs: Sequence[Path], records: Sequence[dict[str, Any]], target: Path) -> None:
    def fill(file: IO[bytes]) -> None:
        before = 0
        for out, record in zip(outs, records, strict=True):
            if record["documents"]:
                ends = np.memmap(out.with_suffix(".ends"), ENDS_TYPE, mode="r")
                for start in range(0, len(ends), _COPY_BYTES // ENDS_TYPE.itemsize):
                    block = ends[start : start + _COPY_BYTES // ENDS_TYPE.itemsize]
                    file.write((block + np.uint64(before)).astype(ENDS_TYPE).tobytes())
                del ends
            before += record["tokens"]

    fill_atomic(target, fill)


def _nothing(counts: RowCounts) -> DatasetError:
    why = f"{counts.summary}. The first: {'; '.join(counts.examples)}" if counts.bad_rows else "its files have no rows"
    return DatasetError(
        f"The dataset contains no text: {why}.",
        "Choose other data, or another text column (text_column).",
        title="The dataset is empty",
    )
