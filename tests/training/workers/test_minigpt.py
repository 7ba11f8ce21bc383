"""The MiniGPT recipe's parts: samples, model."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from tests.training.workers.training.lone_rank import SAMPLES, step_operations
from workers.data.window_batches import spread
from workers.optim.optimizer import Optimization
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.training.task import Task

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


def test_attentions_gradients_are_joined_in_one_copy() -> None:
    """Those of queries, keys and values of a layer; `unbind` would stack them, and the stack be copied again."""
    loss = MiniGPT(SHAPE)(torch.arange(8)[None]).square().mean()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        loss.backward()
    names = Counter(event.name for event in profiled.events() or ())
    assert [names[f"aten::{name}"] for name in ("cat", "stack", "clone")] == [SHAPE.n_layer, 0, 0]


def test_biases_can_be_left_out() -> None:
    torch.manual_seed(0)
    bare, whole = MiniGPT(replace(SHAPE, bias=False)), MiniGPT(SHAPE)
    assert not [name for name, _ in bare.named_parameters() if name.endswith("bias")]
    rest = [name for name, _ in whole.named_parameters() if not name.endswith("bias")]
    assert [name for name, _ in bare.named_parameters()] == rest
    whole.load_state_dict(bare.state_dict(), strict=False)
    tokens = torch.arange(8)[None]
    torch.testing.assert_close(bare(tokens), whole(tokens))  # fresh biases are zeros


def test_what_a_step_does_besides_the_model_is_little() -> None:
    """Operations of the real trainer's step; they don't grow with the model, and a GPU is waited for once at most."""
    found = []
    for layers in (1, 3):
        torch.manual_seed(0)
        model, data = MiniGPT(replace(SHAPE, n_layer=layers)), torch.randint(0, 11, (SAMPLES, 9))

        def loss(model: nn.Module, window: Tensor) -> Tensor:
            return F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

        task = Task(model, lambda indices, data=data: data[torch.from_numpy(indices)], loss)
        found.append(step_operations(replace(task, optimization=Optimization(weight_decay=0.1, clip_norm=1.0)), 4))
    assert found[0].outside == found[1].outside and found[0].waits <= 1
    assert sum(found[0].outside.values()) <= 40, found[0].outside
    assert sum(found[1].model.values()) > sum(found[0].model.values()) > 40
