"""MiniGPT: a small GPT trained on any text, from the first byte to sampled text.

Simplified where it costs little: learned positions, no key-value cache when sampling, samples are neighbouring
windows of the text (each token is predicted exactly once an epoch). The rest is what one would train seriously.

    rankdeck train --recipe minigpt --dataset-file my_texts/ --devices cpu:2 --mode ddp
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workers.recipe_api import ConfigError, DatasetError, Indices, Optimization, PreparedData, Run, Task
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.recipes.minigpt.text import (
    BpeTokenizer,
    ByteTokenizer,
    Tokenizer,
    token_type,
    train_bpe,
    write_tokens,
)


def main(run: Run) -> None:
    """Data, model, loss, training: on every rank."""
    o, length = run.options, run.config.seq_len
    if o["n_embd"] % o["n_head"]:
        raise ConfigError(
            "n_embd", f"The width {o['n_embd']} is not a multiple of the {o['n_head']} heads.", "Change one of the two."
        )

    # data: sample i is tokens [i·T, i·T + T], the last token of one sample being the first of the next
    info = run.prepare(
        lambda folder: tokenize(run, folder),
        depends_on={key: o[key] for key in ("tokenizer", "vocab_size", "val_fraction")},
    )
    tokenizer = open_tokenizer(run)
    tokens = np.memmap(run.data_dir / "tokens.bin", token_type(info["vocab_size"]), mode="r")

    def windows(samples: Indices, start: int) -> Tensor:
        places = start + samples[:, None] * length + np.arange(length + 1)
        return torch.from_numpy(tokens[places].astype(np.int64))  # (batch, T + 1)

    # model
    model = MiniGPT(
        Shape(info["vocab_size"], length, o["n_layer"], o["n_head"], o["n_embd"], o["dropout"], o["grad_checkpointing"])
    )

    # loss: mean cross-entropy of the next token, in nats
    def loss(model: nn.Module, window: Tensor) -> Tensor:
        logits = model(window[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten())

    # sampled text: the same generator each time, so that two evaluations differ by what was learned only
    def sample(_: nn.Module) -> str:
        prompt = torch.tensor(list(tokenizer.encode(o["sample_prompt"].encode("utf-8") or b"\n")), device=run.device)
        generator = torch.Generator().manual_seed(run.config.seed)
        text = model.generate(prompt, o["sample_tokens"], o["sample_temperature"], generator)
        return tokenizer.decode(text[len(prompt) :].tolist())

    run.fit(
        Task(
            model=model,
            batch=lambda indices: windows(spread(indices, run.samples), 0),
            val_batch=lambda indices: windows(indices, info["train_tokens"]),
            loss=loss,
            sample=sample if o["sample_tokens"] else None,
            sample_prompt=o["sample_prompt"],
            optimization=Optimization(
                options={"betas": (o["beta1"], o["beta2"])},
                weight_decay=o["weight_decay"],
                warmup_steps=o["warmup_steps"],
                min_lr_ratio=o["min_lr_ratio"],
                clip_norm=o["clip_norm"],
            ),
            tokens_per_sample=length,
            val_batches=o["val_batches"],
        )
    )


def tokenize(run: Run, folder: Path) -> PreparedData:
    """The text as `tokens.bin`; the last `val_fraction` of it is held out. On rank 0, once."""
    files, length = run.dataset_files(), run.config.seq_len
    if run.options["tokenizer"] == "bpe":
        train_bpe(files, run.options["vocab_size"], folder / "tokenizer.json")
    tokenizer = open_tokenizer(run)
    count = write_tokens(files, tokenizer, folder / "tokens.bin")
    train_tokens = count - max(int(count * run.options["val_fraction"]), length + 1)
    if train_tokens < length + 1:
        raise DatasetError(
            f"The text has {count} tokens; with a sequence length of {length} at least {2 * length + 2} are needed.",
            "Choose more text or a shorter sequence length.",
        )
    info = {"tokens": count, "train_tokens": train_tokens, "vocab_size": tokenizer.vocab_size}
    return PreparedData((train_tokens - 1) // length, (count - train_tokens - 1) // length, info)


def spread(indices: Indices, samples: int) -> Indices:
    """Renumbers the samples so that neighbours in number are far apart in the text.

    A chunk of the ledger is a run of neighbouring numbers; unspread it would be one file, and training would walk from
    one kind of text to the next. Stepping by the golden ratio's share visits every sample once, evenly spread.
    """
    step = round(samples * 0.6180339887)
    while math.gcd(step, samples) != 1:
        step += 1
    return indices * step % samples


def open_tokenizer(run: Run) -> Tokenizer:
    """Bytes, or the BPE that was learned from this run's text."""
    return BpeTokenizer(run.data_dir / "tokenizer.json") if run.options["tokenizer"] == "bpe" else ByteTokenizer()
