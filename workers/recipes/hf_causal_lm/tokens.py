"""Tokenizer of the run: the model's own, a named one, or a BPE learned here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rankdeck.recipe import (
    TOKENIZER,
    TOKENIZER_FILES,
    TextSource,
    Tokens,
    copy_tokenizer,
    read_options,
    tokens_in,
    train_bpe,
)
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
        # It may have another name, beside one that has this.
        shutil.copyfile(path, folder / TOKENIZER)
    elif model is not None:
        copy_tokenizer(model, folder)
    else:
        learn(data.texts(_LEARN_BYTES), options.vocab_size, folder)
    return tokens_in(folder)


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
