"""Tokenises a dataset as one stream, and continues after a kill.

The package tokenizers encodes each batch on all cores. Every few seconds a mark says how far the files are whole, with
their checksums; the next writer continues there. Nothing is forced to the disk for it: what a power failure leaves of
the files has other checksums, and is written again.
"""

from __future__ import annotations

import itertools
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from core.errors import RankdeckError
from core.fault_points import reach
from core.files.atomic import explain, read_json, write_atomic
from core.held_files import open_binary, remove_file
from workers.data.reading.corpus import Corpus
from workers.data.reading.pieces import Piece
from workers.data.reading.row_counts import RowCounts
from workers.data.tokens.tokenizer_spec import Encoder, Ids, token_type

# Holds the mark until the files are whole; then what they are.
INDEX: Final = "index.json"
TOKENS: Final = "tokens.bin"
ENDS: Final = "ends.bin"
ENDS_TYPE: Final = np.dtype("<u8")
_BATCH_PIECES: Final = 512
_MARK_EVERY_S: Final = 10.0
_SAY_EVERY_S: Final = 0.25

# Is told what is being done ("tokenising 43 %"), every few seconds while it lasts; may raise to end it.
Progress = Callable[[str], None]


def write_tokens(corpus: Corpus, encoder: Encoder, folder: Path, progress: Progress) -> tuple[int, int, RowCounts]:
    """Writes the ids, and where each document ends.

    What a killed writer has written is read again, to count its rows, but not tokenised again.

    Args:
        corpus: The dataset.
        encoder: Its tokenizer.
        folder: Where the two files and the marks go.
        progress: See `Progress`.

    Returns:
        How many tokens and documents there are, and the rows.

    Raises:
        DatasetError: A file cannot be read.
        PreflightError: The disk is full, or refuses.
    """
    counts, dtype = RowCounts(), token_type(encoder.vocab_size)
    mark = _read_mark(folder)
    reading = _Reading(corpus.size_bytes, mark["read_bytes"], progress)
    missing = itertools.islice(corpus.pieces(counts, reading), mark["pieces"], None)
    next_mark = time.monotonic() + _MARK_EVERY_S
    try:
        with _File(folder / TOKENS, *mark[TOKENS]) as tokens, _File(folder / ENDS, *mark[ENDS]) as ends:
            for batch in _batches(missing, encoder.batch_bytes):
                ids, batch_ends = _encode(batch, encoder)
                ends.append((batch_ends + tokens.size // dtype.itemsize).astype(ENDS_TYPE))
                tokens.append(ids.astype(dtype, copy=False))
                mark["pieces"] += len(batch)
                reach("tokens_written")
                if time.monotonic() >= next_mark:
                    next_mark = time.monotonic() + _MARK_EVERY_S
                    mark |= {"read_bytes": reading.read_bytes, TOKENS: tokens.flushed(), ENDS: ends.flushed()}
                    write_atomic(folder / INDEX, json.dumps(mark), durable=False)
                    reach("tokens_marked")
    except OSError as error:
        raise explain(error, f"{folder} could not be written") from error
    return tokens.size // dtype.itemsize, ends.size // ENDS_TYPE.itemsize, counts


class _Reading:
    """How much of the files has been read, as progress."""

    def __init__(self, size_bytes: int, read_bytes: int, progress: Progress) -> None:
        self.read_bytes = read_bytes
        self._size_bytes = max(1, size_bytes)
        self._progress, self._next_progress = progress, 0.0

    def __call__(self, read_bytes: int) -> None:
        self.read_bytes = max(self.read_bytes, read_bytes)
        if time.monotonic() >= self._next_progress:
            self._next_progress = time.monotonic() + _SAY_EVERY_S
            self._progress(f"tokenising {100 * self.read_bytes // self._size_bytes} %")


class _File:
    """A file that is appended to, with its size and checksum; forced to the disk at the end of its ``with`` block."""

    def __init__(self, path: Path, size: int, crc32: int) -> None:
        self.size, self._crc32 = size, crc32
        if not size:
            remove_file(path)  # not emptied: a run may have the old one in memory
        self._file = open_binary(path, "ab")
        self._file.truncate(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    def append(self, values: npt.NDArray[Any]) -> None:
        self._file.write(values.data)
        self.size += values.nbytes
        self._crc32 = zlib.crc32(values.data, self._crc32)

    def flushed(self) -> list[int]:
        """Its size and checksum, now that another process would read as much of it."""
        self._file.flush()
        return [self.size, self._crc32]


def _batches(pieces: Iterator[Piece], size_bytes: int) -> Iterator[list[Piece]]:
    batch: list[Piece] = []
    held = 0
    for piece in pieces:
        batch.append(piece)
        held += len(piece.data)
        if held >= size_bytes or len(batch) >= _BATCH_PIECES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _encode(pieces: Sequence[Piece], encoder: Encoder) -> tuple[Ids, Ids]:
    """The pieces' ids with what stands between documents, and where documents end in them."""
    found, ends, count = [], [], 0
    for piece, ids in zip(pieces, encoder.encode([piece.data for piece in pieces]), strict=True):
        found.append(ids)
        count += len(ids)
        if piece.ends:
            found.append(encoder.separator)
            count += len(encoder.separator)
            ends.append(count)
    return np.concatenate(found), np.array(ends, ENDS_TYPE)


def _read_mark(folder: Path) -> dict[str, Any]:
    """How far a killed writer came; the beginning where there is no mark, or the files are not as it says."""
    try:
        mark: dict[str, Any] = read_json(folder / INDEX)
        if all(_crc32(folder / name, mark[name][0]) == mark[name][1] for name in (TOKENS, ENDS)):
            return mark
    except (RankdeckError, OSError, KeyError, TypeError, ValueError):  # ValueError: a file is shorter
        pass
    return {"pieces": 0, "read_bytes": 0, TOKENS: [0, 0], ENDS: [0, 0]}


def _crc32(path: Path, size: int) -> int:
    return zlib.crc32(np.memmap(path, mode="r", shape=size).data) if size else 0
