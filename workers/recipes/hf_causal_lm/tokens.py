"""Tokenizer of the run: the model's own, a named one, or a BPE learned here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rankdeck.recipe import (
    TOKENIZER,
    TOKENIZER_FILES,
    ConfigError,
    TextSource,
    TokenizerError,
    Tokens,
    copy_tokenizer,
    read_options,
    train_bpe,
)
from rankdeck.recipe import tokens_in as open_tokens
from workers.recipes.hf_causal_lm.check import tokenizer_path
from workers.recipes.hf_causal_lm.options import Options

LEARNED_END: Final = "<|endoftext|>"
_LEARN_BYTES: Final = 64 << 20


def make_tokens(data: TextSource, folder: Path, model: Path | None) -> Tokens:
    """Put the tokenizer's files into `folder` and open it there; `model` is None for a model from scratch."""
    folder.mkdir(parents=True, exist_ok=True)
    options = read_options(data, Options)
    named = options.tokenizer_file or ""
    if named:
        path = tokenizer_path(named)
        for name in TOKENIZER_FILES:
            if (path.parent / name).is_file():
                shutil.copyfile(path.parent / name, folder / name)
        shutil.copyfile(path, folder / TOKENIZER)  # it may have another name, beside one that has this
    elif model is not None:
        with _refused():
            copy_tokenizer(model, folder)
    else:
        learn(data.texts(_LEARN_BYTES), options.vocab_size, folder)
    return tokens_in(folder)


def tokens_in(folder: Path) -> Tokens:
    with _refused():
        return open_tokens(folder)


def learn(texts: Iterable[str], vocab_size: int, folder: Path) -> None:
    """Learn a byte-level BPE from texts and write the files of a Hugging Face tokenizer."""
    train_bpe(texts, vocab_size, folder / TOKENIZER, [LEARNED_END])
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": LEARNED_END,
        "eos_token": LEARNED_END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(1e30),
    }
    text = json.dumps(settings, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _refused() -> Iterator[None]:
    """Raise a tokenizer's error as this recipe's."""
    try:
        yield
    except TokenizerError as error:
        raise ConfigError(
            "tokenizer_file", error.cause, error.next_step, title="The tokenizer cannot be used"
        ) from error
