"""What all loops of `bench_peers` share: the model, the data, and how their time is told.

A loop is a program that gets one JSON object as its argument and prints the moment at which each of its steps ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from workers.recipes.minigpt.model import MiniGPT, Shape

# Layers, heads, width.
SHAPE = (4, 4, 256)
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.95)
CLIP_NORM = 1.0


@dataclass(frozen=True)
class Job:
    """What a loop is to do.

    Attributes:
        rank, world: Place among the ranks.
        text: A file whose bytes are the tokens.
        rendezvous: A `file://` address all ranks share.
        steps: Optimizer steps.
        batch: Samples of a rank in a step.
        length: Tokens of a sample.
        synchronised: False when each rank trains by itself.
        shape: The model's layers, heads and width.
        device: Where it trains; on a GPU in bf16, as Rankdeck does by itself.
    """

    rank: int
    world: int
    text: str
    rendezvous: str
    steps: int
    batch: int
    length: int
    synchronised: bool = True
    shape: tuple[int, int, int] = SHAPE
    device: str = "cpu"

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"


def job() -> Job:
    """The one this process was given."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    return Job(**json.loads(sys.argv[1]))


def model(given: Job) -> MiniGPT:
    return MiniGPT(Shape(256, given.length, *given.shape))


def half(given: Job) -> torch.autocast:
    """bf16 on a GPU; on the CPU nothing."""
    return torch.autocast("cuda" if given.on_gpu else "cpu", torch.bfloat16, enabled=given.on_gpu)


class Windows:
    """Random windows of the text, shape (batch, length + 1), int64."""

    def __init__(self, given: Job) -> None:
        self._tokens = np.fromfile(Path(given.text), np.uint8)
        self._picks = np.random.default_rng(given.rank)
        self._given = given

    def next(self) -> Tensor:
        length = self._given.length
        starts = self._picks.integers(0, len(self._tokens) - length - 1, self._given.batch)
        return torch.from_numpy(self._tokens[starts[:, None] + np.arange(length + 1)].astype(np.int64))


class Clock:
    """Tells when steps end: a line each, in seconds since the epoch."""

    def step(self) -> None:
        sys.stdout.write(f"{time.time()}\n")
        sys.stdout.flush()
