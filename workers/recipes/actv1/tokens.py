"""Tokenizer of the run: bytes, or a BPE learned from the text.

Runs of early versions could take the tokenizer of a named model. Its copy in their data folder is used as long as they
are resumed: their weights were made for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rankdeck.recipe import TOKENIZER, TextSource, TokenizerSpec, Tokens, tokenizer_in, tokens_in
from rankdeck.recipe import make_tokenizer as make_own_tokenizer

# Below the run's data folder: the tokenizer of a named model.
KEPT: Final = "tokenizer"


def make_tokenizer(data: TextSource, folder: Path) -> TokenizerSpec:
    """The tokenizer of the run, its files put below `folder`; once for all ranks."""
    kept = folder / KEPT
    return tokens_in(kept).spec if (kept / TOKENIZER).is_file() else make_own_tokenizer(data, folder)


def tokens_of(folder: Path, kind: str) -> Tokens:
    """The result of `make_tokenizer` below `folder`, on any rank."""
    kept = folder / KEPT
    return tokens_in(kept) if (kept / TOKENIZER).is_file() else Tokens(tokenizer_in(folder, kind))
