"""MiniGPT's model on bytes, with a rank that takes longer for the same numbers, or to load them."""

from __future__ import annotations

import copy
import ctypes
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rankdeck.recipe import Indices, Optimization, Run, Task
from tests.helpers.byte_windows import byte_windows
from workers.recipes.minigpt.model import MiniGPT, Shape


class Repeated(nn.Module):
    """The model `times` times over; the mean of equal numbers is the number, so nothing but the time differs.

    Where every pass needs all ranks, a copy that this rank has to itself takes the time: more passes of the model on
    one rank than on the others would leave it waiting for them.
    """

    def __init__(self, model: nn.Module, times: int, *, alone: bool) -> None:
        super().__init__()
        self.model = model
        self.times = times
        self.copies = (copy.deepcopy(model),) if alone and times > 1 else ()  # in a tuple it is no part of this module

    def forward(self, tokens: Tensor) -> Tensor:
        first: Tensor = self.model(tokens)
        for _ in range(self.times - 1):
            if self.copies:
                work_alone(self.copies[0], tokens)
            else:
                first = (first + self.model(tokens)) / 2
        return first


def work_alone(model: nn.Module, tokens: Tensor) -> None:
    logits: Tensor = model(tokens)
    if torch.is_grad_enabled():
        logits.sum().backward()
        model.zero_grad()


class Overflow:
    """Makes one training batch's loss far too large for fp16."""

    def __init__(self, batch: int) -> None:
        self._left = batch

    def __call__(self, loss: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return loss
        self._left -= 1
        return loss * 1e36 if self._left == 0 else loss


def main(run: Run) -> None:
    o, length = run.options, run.config.seq_len
    windows = byte_windows(run)

    def load(samples: Indices) -> Tensor:
        time.sleep(o["load_ms"] / 1000 if run.rank == o["slow_rank"] else 0)
        return windows(samples)

    left = [o["fail_batch"] + 1 if run.rank == o["slow_rank"] else 0]  # one more for the warm-up
    until_crash = [o["crash_batch"] + 1 if run.rank == o["slow_rank"] else 0]
    spoil = Overflow(o["overflow_batch"] + 1 if run.rank == o["overflow_rank"] else 0)  # the first is the warm-up

    def loss(model: nn.Module, window: Tensor) -> Tensor:
        left[0] -= torch.is_grad_enabled()
        if left[0] == 0:
            raise ValueError("this sample cannot be learned")
        until_crash[0] -= torch.is_grad_enabled()
        if until_crash[0] == 0:
            time.sleep(1.0)  # the steps before are reported by then
            ctypes.string_at(0)
        logits = model(window[:, :-1])
        return spoil(F.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten()))

    times = o["times"] if run.rank == o["slow_rank"] else 1
    gpt = MiniGPT(Shape(256, length, o["n_layer"], 2, o["n_embd"]))
    model = Repeated(gpt, times, alone=run.forward_is_collective)
    run.fit(
        Task(
            model=model,
            batch=load,
            val_batch=lambda indices: load(indices + run.samples),
            loss=loss,
            optimization=Optimization(weight_decay=0.1, warmup_steps=5, min_lr_ratio=0.1, clip_norm=1.0),
            tokens_per_sample=length,
        )
    )
