"""Datasets as tokens on disk, made once and shared by every run and rank that reads the same text in the same way.

A folder is named by a hash of the data, the way it is read, and the tokenizer. In it ``tokens.bin`` holds the ids,
``ends.bin`` each document's end, and at last ``index.json`` its facts. One process makes it; others wait for its lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.errors import DatasetError, PreflightError, RankdeckError, RunBusyError
from core.fault_points import reach
from core.files.atomic import explained, read_json, write_atomic
from core.processes.lock import RunLock
from workers.data.reading.corpus import Corpus
from workers.data.reading.pieces import MAX_LINE_BYTES, PIECE_BYTES
from workers.data.reading.row_counts import RowCounts
from workers.data.tokens.token_writer import ENDS, ENDS_TYPE, INDEX, TOKENS, Progress, write_tokens
from workers.data.tokens.tokenizer_spec import TokenizerSpec, token_type
from workers.data.windows import Windows, cut_windows

UNUSED_DAYS: Final = 90
_REMOVED: Final = ".removed"


def mark_used(index: Path) -> None:
    """Make the index as young as the tokens' last use."""
    # A cache that is read only is never cleared either.
    with contextlib.suppress(OSError):
        os.utime(index)


def remove_unused(cache: Path) -> None:
    """Remove folders whose tokens were not used for `UNUSED_DAYS`, by the age of the index in them.

    Under Windows a folder that a process has mapped cannot be renamed, and stays; elsewhere the process keeps what it
    has mapped.
    """
    oldest = time.time() - UNUSED_DAYS * 86_400  # files' times are wall times
    for folder in [entry for entry in cache.iterdir() if entry.is_dir()]:
        with contextlib.suppress(OSError):
            if folder.suffix != _REMOVED:
                used = folder / INDEX
                if (used if used.exists() else folder).stat().st_mtime >= oldest:
                    continue
                folder = folder.rename(folder.with_suffix(_REMOVED))
            shutil.rmtree(folder)


FORMAT: Final = "rankdeck-tokens"
VERSION: Final = 1
_LOCK_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class TokenData:
    """A dataset as tokens.

    Attributes:
        folder: Its folder in the cache.
        counts: Rows, and the bad ones among them.
        reused: It was there already.
        training_documents: Documents before a validation split; None without one.
    """

    folder: Path
    tokens: int
    documents: int
    vocab_size: int
    counts: RowCounts
    reused: bool = False
    training_documents: int | None = None

    def cut(self, seq_len: int, val_fraction: float) -> Windows:
        """Its windows: those of the validation split are held out, or else a share at the end."""
        count = self.training_documents
        if count is None:
            return cut_windows(self.tokens, seq_len, val_fraction)
        return cut_windows(self.tokens, seq_len, val_fraction, int(self.ends()[count - 1]) if count else 0)

    @property
    def facts(self) -> dict[str, Any]:
        counts = self.counts.as_dict()
        return {"tokens": self.tokens, "bad_rows": self.counts.bad_rows, **counts, "reused": self.reused}

    @property
    def info(self) -> dict[str, Any]:
        """Values of `PreparedData.info` for ranks and window."""
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
        """Each document's end, shape (documents,): the number of tokens up to it, separator included."""
        return open_ends(self.folder)


def open_tokens(folder: Path, vocab_size: int) -> np.memmap[Any, Any]:
    mark_used(folder / INDEX)
    return np.memmap(folder / TOKENS, token_type(vocab_size), mode="r")


def open_ends(folder: Path) -> np.memmap[Any, Any]:
    return np.memmap(folder / ENDS, ENDS_TYPE, mode="r")


def is_whole(folder: Path) -> bool:
    """Whether a folder of the cache is there, as it was made."""
    return _found(folder) is not None


def found_tokens(corpus: Corpus, tokenizer: TokenizerSpec, cache: Path) -> TokenData | None:
    return _found(cache / _key(corpus, tokenizer))


def tokenise(corpus: Corpus, tokenizer: TokenizerSpec, cache: Path, progress: Progress = lambda _: None) -> TokenData:
    """The dataset's tokens: found in the cache, or made.

    Raises `DatasetError` for a file that cannot be read or no text, `PreflightError` for a full disk or a missing
    package.
    """
    folder = cache / _key(corpus, tokenizer)
    found = _found(folder)
    if found is not None:
        return found
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, progress):
        data = _found(folder) or _make(corpus, tokenizer, folder, progress)
    remove_unused(cache)
    return data


def _key(corpus: Corpus, tokenizer: TokenizerSpec) -> str:
    facts = [VERSION, corpus.digest, tokenizer.key, PIECE_BYTES, MAX_LINE_BYTES]
    return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()[:32]


def _found(folder: Path) -> TokenData | None:
    """The tokens in a folder of the cache; None where they are unfinished or damaged."""
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
            training_documents=index.get("training_documents"),
        )
        item_bytes = token_type(data.vocab_size).itemsize
        whole = (folder / TOKENS).stat().st_size == data.tokens * item_bytes
        whole = whole and (folder / ENDS).stat().st_size == data.documents * ENDS_TYPE.itemsize
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


def _make(corpus: Corpus, tokenizer: TokenizerSpec, folder: Path, progress: Progress) -> TokenData:
    encoder = tokenizer.open()
    _check_space(corpus, folder, token_type(encoder.vocab_size).itemsize)
    tokens, documents, counts = write_tokens(corpus, encoder, folder, progress)
    if not tokens:
        raise _nothing(counts)
    index = {
        "format": FORMAT, "version": VERSION, "tokens": tokens, "documents": documents,
        "vocab_size": encoder.vocab_size, "counts": counts.as_dict(), "files": len(corpus.sources),
        "training_documents": counts.training_documents,
    }  # fmt: skip
    reach("before_index")
    write_atomic(folder / INDEX, json.dumps(index, ensure_ascii=False, indent=1) + "\n")
    shutil.rmtree(folder / "parts", ignore_errors=True)  # of an earlier 0.1 that was killed
    return TokenData(
        folder, tokens, documents, encoder.vocab_size, counts, training_documents=counts.training_documents
    )


def _check_space(corpus: Corpus, folder: Path, item_bytes: int) -> None:
    """Raise `PreflightError` where the tokens will not fit on the disk, by the files' sizes."""
    # Words of several bytes become a token of two: about half the text's size. Packed text is three times its file.
    per_byte = 1.0 if item_bytes == 1 else item_bytes / 3
    needed = sum(per_byte * source.size_bytes * (3 if source.packing else 1) for source in corpus.sources)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise PreflightError(
            f"The tokens need about {needed / 1e9:.1f} GB in {folder.parent}, and {free / 1e9:.1f} GB are free there.",
            "Free some space, or set RANKDECK_HOME to another drive.",
            title="The disk is too full",
        )


def _nothing(counts: RowCounts) -> DatasetError:
    why = f"{counts.summary}. The first: {'; '.join(counts.examples)}" if counts.bad_rows else "its files have no rows"
    return DatasetError(
        f"The dataset contains no text: {why}.",
        "Choose other data, or another text column (text_column).",
        title="The dataset is empty",
    )
