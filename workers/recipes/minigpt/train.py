"""MiniGPT: a small GPT trained on any text, from the first byte to sampled text.

Simplified where it costs little: learned positions, samples are neighbouring windows of the text (each token is
predicted exactly once an epoch). The rest is what one would train seriously.

    rankdeck train --recipe minigpt --dataset-file my_texts/ --devices cpux2 --mode ddp
"""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn
from torch.nn import functional as F

from rankdeck.recipe import (
    Optimization,
    Request,
    Run,
    Task,
    check_heads,
    make_tokenizer,
    opening_text,
    read_options,
    tokenizer_in,
)
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.recipes.minigpt.options import Options

# The vocabulary if each byte is a token.
BYTES: Final = 256


def main(run: Run) -> None:
    """Data, model, loss, training: on every rank."""
    o, length = read_options(run, Options), run.config.seq_len
    check_heads(o.n_embd, o.n_head)

    # data: sample i is tokens [i·T, i·T + T], the last token of one sample being the first of the next
    depends_on = {"tokenizer": o.tokenizer, "vocab_size": o.vocab_size, "val_fraction": o.val_fraction}
    windows = run.prepare_windows(make_tokenizer, depends_on)
    tokenizer = tokenizer_in(run.data_dir, o.tokenizer).open()
    model = make_model(o, length, run.info["vocab_size"])

    # loss: mean cross-entropy of the next token, in nats
    def loss(model: nn.Module, window: Tensor) -> Tensor:
        logits = model(window[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten())

    begin = o.sample_prompt or opening_text(windows.tokens[windows.train_tokens :], tokenizer.decode)

    def sample(_: nn.Module) -> str:
        prompt = tokenizer.encode([begin.encode("utf-8")])[0].tolist()
        return tokenizer.decode(run.sample_tokens(model.writer(), prompt, o.sample_tokens, o.sample_temperature))

    run.fit(
        Task(
            model=model,
            batch=windows.train,
            val_batch=windows.held_out,
            loss=loss,
            sample=sample if o.sample_tokens else None,
            sample_prompt=begin,
            optimization=Optimization(
                options={"betas": (o.beta1, o.beta2)},
                weight_decay=o.weight_decay,
                warmup_steps=o.warmup_steps,
                min_lr_ratio=o.min_lr_ratio,
                clip_norm=o.clip_norm,
            ),
            tokens_per_sample=length,
        )
    )


def make_model(o: Options, seq_len: int, vocab_size: int) -> MiniGPT:
    return MiniGPT(Shape(vocab_size, seq_len, o.n_layer, o.n_head, o.n_embd, o.dropout, o.grad_checkpointing, o.bias))


def build_model(request: Request) -> MiniGPT:
    """The model that these settings ask for, to count its parameters; BPE is taken to learn as much as it may."""
    o = read_options(request, Options)
    return make_model(o, request.config.seq_len, o.vocab_size if o.tokenizer == "bpe" else BYTES)
