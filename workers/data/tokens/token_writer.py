"""Tokenises a dataset as one stream; the package tokenizers encodes each batch on all cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import numpy as np

from core.fault_points import reach
from core.files.atomic import explain
from core.held_files import open_binary, remove_file
from workers.data.reading.corpus import Corpus
from workers.data.reading.pieces import Piece
from workers.data.reading.row_counts import RowCounts
from workers.data.tokens.tokenizer_spec import Encoder, Ids, token_type

# Written last, when the other files are whole.
INDEX: Final = "index.json"
TOKENS: Final = "tokens.bin"
ENDS: Final = "ends.bin"
ENDS_TYPE: Final = np.dtype("<u8")
_BATCH_PIECES: Final = 512
_SAY_EVERY_S: Final = 0.25

# Is told what is being done ("tokenising 43 %"), every few seconds while it lasts; may raise to end it.
Progress = Callable[[str], None]


def write_tokens(corpus: Corpus, encoder: Encoder, folder: Path, progress: Progress) -> tuple[int, int, RowCounts]:
    """Write the ids and each document's end; return the numbers of tokens and documents, and the rows.

    Raises `DatasetError` for a file that cannot be read, `PreflightError` for the disk.
    """
    counts, dtype = RowCounts(), token_type(encoder.vocab_size)
    pieces = corpus.pieces(counts, _Reading(corpus.size_bytes, progress))
    tokens = documents = 0
    try:
        for name in (TOKENS, ENDS):
            # Not emptied: a run may have the old one in memory.
            remove_file(folder / name)
        with open_binary(folder / TOKENS, "wb") as token_file, open_binary(folder / ENDS, "wb") as end_file:
            for batch in _batches(pieces, encoder.batch_bytes):
                ids, ends = _encode(batch, encoder)
                end_file.write((ends + tokens).astype(ENDS_TYPE).data)
                token_file.write(ids.astype(dtype, copy=False).data)
                tokens, documents = tokens + len(ids), documents + len(ends)
                reach("tokens_written")
            for file in (token_file, end_file):
                _flush(file)
    except OSError as error:
        raise explain(error, f"{folder} could not be written") from error
    return tokens, documents, counts


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


class _Reading:
    """Progress of reading the files."""

    def __init__(self, size_bytes: int, progress: Progress) -> None:
        self._size_bytes = max(1, size_bytes)
        self._progress, self._next_progress = progress, 0.0

    def __call__(self, read_bytes: int) -> None:
        if time.monotonic() >= self._next_progress:
            self._next_progress = time.monotonic() + _SAY_EVERY_S
            self._progress(f"tokenising {100 * read_bytes // self._size_bytes} %")


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
    """The pieces' ids with separators between documents, and the documents' ends in them."""
    found, ends, count = [], [], 0
    for piece, ids in zip(pieces, encoder.encode([piece.data for piece in pieces]), strict=True):
        found.append(ids)
        count += len(ids)
        if piece.ends:
            found.append(encoder.separator)
            count += len(encoder.separator)
            ends.append(count)
    return np.concatenate(found), np.array(ends, ENDS_TYPE)
