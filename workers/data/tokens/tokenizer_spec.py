"""Tokenizers: as a value, and opened, from text to token ids and back."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import psutil

from core.data.formats import BETWEEN_DOCUMENTS
from core.errors import PreflightError
from core.held_files import read_all, read_utf8

Ids = npt.NDArray[Any]
_PART_CHARS: Final = 1 << 14
_BATCH_BYTES: Final = 1 << 22
_MAX_THREADS: Final = 8
# What it takes to encode that many bytes as one text.
_THREAD_MEMORY: Final = 600 << 20
_CUT: Final = re.compile(r"(?<=\S)\n(?=\S)")


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """A tokenizer and the separator between two documents.

    Attributes:
        kind: "bytes" (every byte is a token) or "tokenizers" (a ``tokenizer.json`` of the package of that name).
        path: That file.
        separator: The text between two documents, as tokens.
        separator_id: A token that stands there instead (a model's end of text), by its id.
    """

    kind: Literal["bytes", "tokenizers"] = "bytes"
    path: str = ""
    separator: str = BETWEEN_DOCUMENTS
    separator_id: int | None = None

    @property
    def key(self) -> str:
        """A text that is the same for the same tokens."""
        content = hashlib.sha256(read_all(Path(self.path))).hexdigest() if self.path else ""
        return f"{self.kind} {content} {self.separator if self.separator_id is None else self.separator_id!r}"

    def open(self) -> Encoder:
        return _Bytes(self) if self.kind == "bytes" else _Tokenizers(self)


class Encoder(Protocol):
    """Text to token ids and back.

    Attributes:
        vocab_size: All ids are below it.
        separator: Ids between two documents.
        batch_bytes: Text that keeps all cores busy when it is encoded in one call.
    """

    vocab_size: int
    separator: Ids
    batch_bytes: int

    def encode(self, pieces: Sequence[bytes]) -> list[Ids]:
        """The ids of each piece of UTF-8 text; no tokens are added at its ends."""
        ...

    def decode(self, ids: Sequence[int]) -> str: ...


class _Bytes:
    vocab_size = 256
    batch_bytes = _BATCH_BYTES

    def __init__(self, spec: TokenizerSpec) -> None:
        one = None if spec.separator_id is None else bytes([spec.separator_id])
        self.separator: Ids = np.frombuffer(spec.separator.encode("utf-8") if one is None else one, np.uint8)

    def encode(self, pieces: Sequence[bytes]) -> list[Ids]:
        return [np.frombuffer(piece, np.uint8) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


class _Tokenizers:
    def __init__(self, spec: TokenizerSpec) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise PreflightError(
                "These tokens need the package tokenizers, which is not installed here.",
                "Install it: pip install tokenizers",
                title="A package is missing",
            ) from None
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # said, it does not warn of a fork
        self._tokenizer: Any = Tokenizer.from_str(read_utf8(Path(spec.path)))
        # A model's own file may say to cut; nothing of the text is to be lost.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        ids = self._tokenizer.get_vocab().values()
        # Numbers may be left out, and the highest must still fit.
        self.vocab_size: int = max(ids, default=-1) + 1
        self._may_cut = _is_byte_level(json.loads(self._tokenizer.to_str()))
        self.batch_bytes = _BATCH_BYTES * (1 if self._may_cut else _threads())
        if spec.separator_id is None:
            self.separator = (
                self.encode([spec.separator.encode("utf-8")])[0] if spec.separator else np.zeros(0, np.uint32)
            )
        else:
            self.separator = np.array([spec.separator_id], np.uint32)

    def encode(self, pieces: Sequence[bytes]) -> list[Ids]:
        parts = [list(self._parts(piece.decode("utf-8", "replace"))) for piece in pieces]
        # The fast form leaves out each token's place in the text: the same ids in a fraction of the memory.
        encode = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)
        encodings = iter(encode(list(itertools.chain.from_iterable(parts)), add_special_tokens=False))
        return [
            np.concatenate([np.array(encoding.ids, np.uint32) for encoding in itertools.islice(encodings, len(texts))])
            for texts in parts
        ]

    def _parts(self, text: str) -> Iterator[str]:
        """A long text in parts that give the same tokens: the package encodes each on a thread of its own.

        A byte-level tokenizer splits a text into words before anything else, and never joins across a single line end
        between two characters that are no space.
        """
        start = 0
        while self._may_cut and len(text) - start > _PART_CHARS:
            place = _CUT.search(text, start + _PART_CHARS)
            if place is None:
                break
            yield text[start : place.end()]
            start = place.end()
        yield text[start:]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)
        return text


def _is_byte_level(document: Mapping[str, Any]) -> bool:
    """Whether a ``tokenizer.json`` splits text by white space into words of bytes, as GPT-2's does."""
    before, normalizer = document.get("pre_tokenizer") or {}, document.get("normalizer")
    kinds = [before.get("type"), *(step.get("type") for step in before.get("pretokenizers", ()))]
    return "ByteLevel" in kinds and (normalizer is None or normalizer.get("type") == "NFC")


def _threads() -> int:
    """The number of long texts to encode at a time, by cores and memory; at most eight."""
    cores = psutil.cpu_count(logical=False) or 1
    return max(1, min(cores, psutil.virtual_memory().available // (2 * _THREAD_MEMORY), _MAX_THREADS))


def token_type(vocab_size: int) -> np.dtype[Any]:
    return np.dtype("u1" if vocab_size <= 1 << 8 else "<u2" if vocab_size <= 1 << 16 else "<u4")
