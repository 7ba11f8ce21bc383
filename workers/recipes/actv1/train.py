"""ACT-v1: a hierarchical recurrent model on any text, that learns how long to think about each token.

rankdeck train --recipe actv1 --halt-max-steps 4 --dataset-file my_texts/ --devices cpux2 --mode ddp
"""

from __future__ import annotations

from torch import Tensor, nn

from rankdeck.recipe import (
    LossAndMetrics,
    Optimization,
    Request,
    Run,
    Task,
    check_heads,
    opening_text,
    read_options,
)  # fmt: skip
from workers.recipes.actv1.halting import Rule, judge
from workers.recipes.actv1.model import HierarchicalModel, Shape
from workers.recipes.actv1.options import Options
from workers.recipes.actv1.tokens import make_tokenizer, tokens_of

# The vocabulary if each byte is a token.
BYTES = 256


def main(run: Run) -> None:
    """Data, model, loss, training: on every rank."""
    o = read_options(run, Options)
    check_heads(o.n_embd, o.n_head, even=True)
    depends_on = {key: run.options[key] for key in ("tokenizer", "vocab_size", "val_fraction")}
    windows = run.prepare_windows(make_tokenizer, depends_on)
    tokens = tokens_of(run.data_dir, o.tokenizer)
    tokenizer = tokens.spec.open()
    model = make_model(o, run.config.seq_len, run.info["vocab_size"], every_segment=run.forward_is_collective)
    rule = Rule(o.halt_max_steps, o.q_weight, o.step_price)

    def loss(model: nn.Module, window: Tensor) -> LossAndMetrics:
        return judge(model(window[:, :-1], window[:, 1:]), rule)

    begin = o.sample_prompt or opening_text(windows.tokens[windows.train_tokens :], tokenizer.decode)

    def sample(_: nn.Module) -> str:
        prompt = tokens.prompt(tokenizer, begin)
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
            tokens_per_sample=run.config.seq_len,
        )
    )


def make_model(o: Options, seq_len: int, vocab_size: int, *, every_segment: bool = False) -> HierarchicalModel:
    return HierarchicalModel(
        Shape(
            vocab_size=vocab_size,
            seq_len=seq_len,
            n_embd=o.n_embd,
            n_head=o.n_head,
            dropout=o.dropout,
            h_layers=o.h_layers,
            l_layers=o.l_layers,
            h_cycles=o.h_cycles,
            l_cycles=o.l_cycles,
            halt_max_steps=o.halt_max_steps,
            halt_exploration=o.halt_exploration,
            every_segment=every_segment,
            grad_checkpointing=o.grad_checkpointing,
        )
    )


def build_model(request: Request) -> HierarchicalModel:
    """The model that these settings ask for, to count its parameters; BPE is taken to learn as much as it may."""
    o = read_options(request, Options)
    return make_model(o, request.config.seq_len, o.vocab_size if o.tokenizer == "bpe" else BYTES)
