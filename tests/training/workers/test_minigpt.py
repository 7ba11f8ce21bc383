"""The MiniGPT recipe's parts: samples, model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from workers.data.window_batches import spread
from workers.decoding.written_tokens import write_tokens
from workers.recipes.minigpt.model import MiniGPT, Shape

SHAPE = Shape(vocab_size=11, seq_len=8, n_layer=2, n_head=2, n_embd=8)


@pytest.mark.parametrize("samples", [1, 2, 3, 97, 256, 1_000, 2_999])
def test_spreading_is_a_permutation(samples: int) -> None:
    assert sorted(spread(np.arange(samples), samples)) == list(range(samples))


def test_spreading_takes_every_part_of_the_text_into_every_chunk() -> None:
    chunk = spread(np.arange(4_000, 4_500), 80_000)
    counts, _ = np.histogram(chunk, bins=10, range=(0, 80_000))
    assert counts.min() > 40


def test_a_token_sees_only_what_comes_before_it() -> None:
    torch.manual_seed(0)
    model = MiniGPT(SHAPE).eval()
    tokens = torch.randint(0, 11, (2, 8))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    assert torch.equal(model(tokens)[:, :5], model(changed)[:, :5])
    assert not torch.equal(model(tokens)[:, 5:], model(changed)[:, 5:])


def test_it_begins_knowing_nothing() -> None:
    torch.manual_seed(0)
    logits = MiniGPT(SHAPE)(torch.randint(0, 11, (4, 8)))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(0, 11, (32,)))
    assert loss.item() == pytest.approx(math.log(11), rel=0.05)


def test_checkpointing_changes_no_gradient() -> None:
    gradients = []
    for switch in (False, True):
        torch.manual_seed(0)
        model = MiniGPT(Shape(11, 8, 2, 2, 8, grad_checkpointing=switch))
        model(torch.arange(8)[None]).square().mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True) if a is not None and b is not None)


def test_generation_is_repeatable_and_longer_than_the_window() -> None:
    torch.manual_seed(0)
    model = MiniGPT(SHAPE).eval()
    prompt = torch.tensor([1, 2])
    first, again = (write_tokens(model.writer(), prompt, 20, 0.9, torch.Generator().manual_seed(4)) for _ in range(2))
    assert first.shape == (22,) and first[:2].tolist() == [1, 2]
    assert torch.equal(first, again)
    cold, again = (write_tokens(model.writer(), prompt, 5, 0.0, torch.Generator()) for _ in range(2))
    assert torch.equal(cold, again)
