"""Turns one part of a dataset into tokens on disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from core.errors import RankdeckError
from core.files.atomic import explain, read_json, write_atomic
from workers.data.reading.pieces import PIECE_BYTES, Part, Piece, part_pieces
from workers.data.reading.row_counts import RowCounts
from workers.data.tokens.tokenizer_spec import Encoder, token_type

_BATCH_PIECES: Final = 512
_READ_BYTES: Final = 1 << 20
ENDS_TYPE: Final = np.dtype("<u8")


def write_part(part: Part, encoder: Encoder, out: Path, on_read: Callable[[int], None]) -> dict[str, Any]:
    """Writes ``OUT.tokens``, ``OUT.ends`` (where each document ends, in tokens of this part), at last ``OUT.json``.

    Args:
        part: What is read.
        encoder: Its tokenizer.
        out: The files' common start. What a killed writer left there is overwritten.
        on_read: Called now and then with the bytes of the part that have been read.

    Returns:
        What stands in ``OUT.json``: ``tokens``, ``documents``, ``counts``.

    Raises:
        DatasetError: The part cannot be read.
        PreflightError: The disk is full, or refuses.
    """
    counts = RowCounts()
    try:
        with out.with_suffix(".tokens").open("wb") as tokens, out.with_suffix(".ends").open("wb") as ends:
            writer = _Writer(encoder, tokens, ends)
            for piece in part_pieces(part, counts, on_read):
                writer.add(piece)
            writer.flush()
    except RankdeckError:
        raise
    except OSError as error:
        raise explain(error, f"{out} could not be written") from error
    record = {
        "tokens": writer.tokens, "documents": writer.documents, "counts": counts.as_dict(), "part": asdict(part),
        "crc32": writer.crc32,
    }  # fmt: skip
    # Nothing is forced to the disk: for thousands of small files that took longer than tokenising. What a power failure
    # leaves of a part has another sum.
    write_atomic(out.with_suffix(".json"), json.dumps(record), durable=False)
    return record


def found_part(part: Part, out: Path) -> dict[str, Any] | None:
    """What an earlier `write_part` of the same part wrote, if it is whole."""
    try:
        record = read_json(out.with_suffix(".json"))
        sums = [_crc32(out.with_suffix(suffix)) for suffix in (".tokens", ".ends")]
        whole = record["part"] == asdict(part) and record["crc32"] == sums
    except (RankdeckError, OSError, KeyError, TypeError):
        return None
    return record if whole else None


def _crc32(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            found = zlib.crc32(block, found)
    return found


class _Writer:
    def __init__(self, encoder: Encoder, tokens: IO[bytes], ends: IO[bytes]) -> None:
        self.tokens = 0
        self.documents = 0
        self.crc32 = [0, 0]
        self._encoder = encoder
        self._dtype = token_type(encoder.vocab_size)
        self._separator = encoder.separator.astype(self._dtype)
        self._tokens, self._ends = tokens, ends
        self._waiting: list[Piece] = []
        self._bytes = 0

    def add(self, piece: Piece) -> None:
        self._waiting.append(piece)
        self._bytes += len(piece.data)
        if self._bytes >= PIECE_BYTES or len(self._waiting) >= _BATCH_PIECES:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        ends = []
        found = []
        for piece, ids in zip(self._waiting, self._encoder.encode([p.data for p in self._waiting]), strict=True):
            found.append(ids.astype(self._dtype, copy=False))
            self.tokens += len(ids)
            if piece.ends:
                found.append(self._separator)
                self.tokens += len(self._separator)
                ends.append(self.tokens)
        written = np.concatenate(found).tobytes(), np.array(ends, ENDS_TYPE).tobytes()
        self._tokens.write(written[0])
        self._ends.write(written[1])
        self.crc32 = [zlib.crc32(data, before) for data, before in zip(written, self.crc32, strict=True)]
        self.documents += len(ends)
        self._waiting, self._bytes = [], 0
