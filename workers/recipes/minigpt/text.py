"""Text files to one long array of tokens on disk, and back: bytes as they are, or a BPE learned from the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

_PIECE_BYTES: Final = 1 << 22
_BPE_TEXT_BYTES: Final = 64 << 20
_BETWEEN_FILES: Final = b"\n\n"


class Tokenizer(Protocol):
    """Text to token ids and back."""

    vocab_size: int

    def encode(self, text: bytes) -> Sequence[int]:
        """Token ids of some UTF-8 text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids; what is no UTF-8 is marked."""


class ByteTokenizer:
    """Every byte is a token."""

    vocab_size = 256

    def encode(self, text: bytes) -> Sequence[int]:
        """The bytes."""
        return text

    def decode(self, tokens: Sequence[int]) -> str:
        """The bytes as UTF-8."""
        return bytes(tokens).decode("utf-8", "replace")


class BpeTokenizer:
    """A byte-level BPE in `tokenizer.json`, by the `tokenizers` package."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as Bpe

        self._bpe: Any = Bpe.from_str(path.read_text(encoding="utf-8"))
        self.vocab_size: int = self._bpe.get_vocab_size()

    def encode(self, text: bytes) -> Sequence[int]:
        """Pieces by the learned merges."""
        ids: list[int] = self._bpe.encode(text.decode("utf-8", "replace")).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The pieces put together."""
        text: str = self._bpe.decode(list(tokens))
        return text


def train_bpe(files: Sequence[Path], vocab_size: int, path: Path) -> None:
    """Learns merges from the first 64 MiB of the text and writes them to `path`."""
    from tokenizers import Tokenizer as Bpe
    from tokenizers import decoders, models, pre_tokenizers, trainers

    bpe: Any = Bpe(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(_first_texts(files), trainer=trainer)
    path.write_text(bpe.to_str(), encoding="utf-8", newline="\n")


def write_tokens(files: Sequence[Path], tokenizer: Tokenizer, path: Path) -> int:
    """Writes the tokens of all files, one after the other, as little-endian numbers of `token_type`.

    Returns:
        How many tokens.
    """
    dtype = token_type(tokenizer.vocab_size)
    count = 0
    with path.open("wb") as out:
        for piece in pieces(files):
            ids = tokenizer.encode(piece)
            array = np.frombuffer(ids, np.uint8) if isinstance(ids, bytes) else np.asarray(ids)
            out.write(array.astype(dtype).tobytes())
            count += len(array)
    return count


def token_type(vocab_size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds every id."""
    return np.dtype("u1" if vocab_size <= 1 << 8 else "<u2" if vocab_size <= 1 << 16 else "<u4")


def pieces(files: Sequence[Path]) -> Iterator[bytes]:
    """The text in pieces of at most 4 MiB that end with a line, an empty line after each file."""
    for file in files:
        with file.open("rb") as source:
            while block := source.read(_PIECE_BYTES):
                yield block + source.readline()
        yield _BETWEEN_FILES


def _first_texts(files: Sequence[Path]) -> Iterator[str]:
    left = _BPE_TEXT_BYTES
    for piece in pieces(files):
        if left <= 0:
            return
        left -= len(piece)
        yield piece.decode("utf-8", "replace")
