"""Writing a sample with the key-value cache, beside a pass over the whole text for each token and beside training.

    python -m tests.benchmarks.run_all sampling

What is measured is minigpt's default shape on one CPU thread: 100 tokens after a prompt of 16, the same text both ways.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import pytest
import torch
from torch.nn import functional as F

from workers.decoding.written_tokens import write_tokens
from workers.recipes.minigpt.model import MiniGPT, Shape

pytestmark = pytest.mark.benchmark
SHAPE = Shape(vocab_size=259, seq_len=128, n_layer=4, n_head=4, n_embd=128)
BATCH, PROMPT, TOKENS, TURNS = 8, 16, 100, 9


def with_cache(model: MiniGPT, prompt: torch.Tensor) -> torch.Tensor:
    return write_tokens(model.writer(), prompt, TOKENS, 0.0, torch.Generator())


@torch.no_grad()
def without_cache(model: MiniGPT, prompt: torch.Tensor) -> torch.Tensor:
    """The plain loop: each token is one pass over all that is written."""
    text = prompt
    for _ in range(TOKENS):
        text = torch.cat([text, model(text[None])[0, -1].argmax()[None]])
    return text


def train_step(model: MiniGPT, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    logits = model(batch[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_a_sample_with_and_without_a_cache() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        model = MiniGPT(SHAPE)
        optimizer = torch.optim.AdamW(model.parameters())
        batch = torch.randint(SHAPE.vocab_size, (BATCH, SHAPE.seq_len + 1))
        prompt = batch[0, :PROMPT]
        model.eval()
        assert with_cache(model, prompt).equal(without_cache(model, prompt))
        kept, whole, steps = [], [], []
        for _ in range(TURNS):
            kept.append(seconds(partial(with_cache, model, prompt)))
            whole.append(seconds(partial(without_cache, model, prompt)))
            steps.append(seconds(partial(train_step, model, optimizer, batch)))
    finally:
        torch.set_num_threads(threads)
    ratios = [before / after for before, after in zip(whole, kept, strict=True)]
    print(
        f"\nsample of {TOKENS} tokens  with cache {median(kept) * 1e3:6.1f} ms   without {median(whole) * 1e3:6.1f} ms"
        f"   training step {median(steps) * 1e3:6.1f} ms"
    )
    print(
        f"ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}): so many times faster with the cache; "
        f"one sample takes as long as {median(kept) / median(steps):.1f} training steps"
    )
