"""MiniGPT's model on bytes, with a rank that hangs in one batch, the first time that it comes there."""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rankdeck.recipe import Optimization, Run, Task
from tests.helpers.byte_windows import byte_windows
from workers.recipes.minigpt.model import MiniGPT, Shape

LONG_S: Final = 600


class Hang:
    """Hangs in one training batch, once in the life of a run; `marker` says that it did."""

    def __init__(self, how: str, batch: int, marker: Path) -> None:
        self._how = how
        self._left = batch
        self._marker = marker

    def __call__(self, logits: Tensor) -> None:
        if not torch.is_grad_enabled():
            return
        self._left -= 1
        if self._left != 0 or self._marker.exists():
            return
        self._marker.touch()
        if self._how == "collective":
            logits.register_hook(lambda _: sleep_in_backward())
        elif self._how == "busy":
            loop_for_ever()
        elif self._how == "lock":
            sleep_with_the_lock()
        else:
            sleep_in_forward()


def sleep_in_forward() -> None:
    time.sleep(LONG_S)


def sleep_in_backward() -> None:
    """The others are in the same backward pass and wait for this rank's gradients."""
    time.sleep(LONG_S)


def loop_for_ever() -> None:
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        pass


def sleep_with_the_lock() -> None:
    if sys.platform == "win32":
        ctypes.PyDLL("kernel32").Sleep(1000 * LONG_S)
        return
    # A mutex locked twice: a sleep would end with the signal that asks for stacks, and the run with it.
    mutex = ctypes.create_string_buffer(64)  # zeros are PTHREAD_MUTEX_INITIALIZER
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)


def main(run: Run) -> None:
    o, length = run.options, run.config.seq_len

    windows = byte_windows(run)
    hang = Hang(o["hang_how"], o["hang_batch"] if run.rank == o["hang_rank"] else 0, run.data_dir / "hung")

    def loss(model: nn.Module, window: Tensor) -> Tensor:
        logits = model(window[:, :-1])
        hang(logits)
        return F.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten())

    run.fit(
        Task(
            model=MiniGPT(Shape(256, length, 1, 2, o["n_embd"])),
            batch=windows,
            val_batch=lambda indices: windows(indices + run.samples),
            loss=loss,
            optimization=Optimization(weight_decay=0.1, warmup_steps=5, min_lr_ratio=0.1, clip_norm=1.0),
            tokens_per_sample=length,
        )
    )
