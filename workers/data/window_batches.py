"""Batches of neighbouring windows of a text's tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowBatches:
    """Sample i is tokens [i·T, i·T + T], so that each token is predicted exactly once an epoch.

    Attributes:
        tokens: Ids, shape (tokens,).
        length: T, the tokens that a sample predicts.
        samples: Windows to train on.
        train_tokens: The first held-out token.
    """

    tokens: npt.NDArray[Any]
    length: int
    samples: int
    train_tokens: int

    def train(self, indices: Indices) -> Tensor:
        """Training samples by their numbers, spread over the text; ids of shape (n, T + 1)."""
        return self._windows(spread(indices, self.samples), 0)

    def held_out(self, indices: Indices) -> Tensor:
        """Held-out samples by their numbers; ids of shape (n, T + 1)."""
        return self._windows(indices, self.train_tokens)

    def _windows(self, samples: Indices, start: int) -> Tensor:
        places = start + samples[:, None] * self.length + np.arange(self.length + 1)
        return torch.from_numpy(self.tokens[places].astype(np.int64))


def spread(indices: Indices, samples: int) -> Indices:
    """Renumber the samples so that neighbours in number are far apart in the text.

    A chunk of the ledger is a run of neighbouring numbers; unspread, training would walk from one kind of text to the
    next. Stepping by the golden ratio's share visits every sample once, evenly spread.
    """
    step = round(samples * 0.6180339887)
    while math.gcd(step, samples) != 1:
        step += 1
    return indices * step % samples
