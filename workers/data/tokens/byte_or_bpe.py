"""Tokens of models from scratch: bytes, or a BPE learned from the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from core.config import RunConfig
from workers.data.prepared import give_back_spare_memory
from workers.data.tokens.tokenizer_spec import TokenizerSpec

BPE_TEXT_BYTES: Final = 64 << 20


class TextSource(Protocol):
    """A dataset's text, for `make_tokenizer(data, folder)`, which a recipe on text may have: it returns the
    `TokenizerSpec` of the tokens that the model sees, its file made in `folder`. `rankdeck preview` calls it too."""

    config: RunConfig

    @property
    def options(self) -> Mapping[str, Any]: ...

    def texts(self, limit_bytes: int) -> Iterator[str]:
        """The start of the text, in pieces, up to a number of bytes; documents end with an empty line."""


def make_tokenizer(data: TextSource, folder: Path) -> TokenizerSpec:
    """The tokenizer of the options `tokenizer` ("byte" or "bpe") and `vocab_size`.

    A BPE is learned from the text's first 64 MiB, into `folder`.
    """
    if data.options["tokenizer"] == "bpe":
        train_bpe(data.texts(BPE_TEXT_BYTES), data.options["vocab_size"], folder / "tokenizer.json")
    return tokenizer_in(folder, data.options["tokenizer"])


def tokenizer_in(folder: Path, kind: str) -> TokenizerSpec:
    return TokenizerSpec("tokenizers", str(folder / "tokenizer.json")) if kind == "bpe" else TokenizerSpec()


def train_bpe(texts: Iterable[str], vocab_size: int, path: Path, special_tokens: Sequence[str] = ()) -> None:
    """Learn merges from the texts and write them to `path`, in the form of the `tokenizers` package."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe: Any = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(special_tokens), initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(texts, trainer=trainer)
    del trainer
    # A hundred times the text, which threads that encode it next would not find.
    give_back_spare_memory()
    path.write_text(bpe.to_str(), encoding="utf-8", newline="\n")
