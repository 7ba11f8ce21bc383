"""Memory of the tokens that are written already, segment by segment: keys, values and states.

A token that has halted keeps its state, and what comes after it changes nothing about it. So the keys and values that
it shows to later tokens in a segment are the same at every pass, and are computed once. A token that halted early has
none yet for the later segments; they are made up for when a later token thinks that long.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankdeck.recipe import KeyValues


class Segment:
    """One segment of thinking.

    Attributes:
        kept: Keys and values of every application of a layer, in their order.
        length: Tokens that it was computed for.
    """

    def __init__(self) -> None:
        self.kept: list[KeyValues] = []
        self.length = 0
        self._after: list[Tensor] = []

    def add(self, high: Tensor, low: Tensor, thinking: Tensor) -> None:
        """Takes note of the next tokens: states, shape (1, tokens, width), and which have not halted, (1, tokens)."""
        new = [high, low, thinking]
        self._after = [torch.cat(pair, dim=1) for pair in zip(self._after, new, strict=True)] if self.length else new
        self.length += thinking.shape[1]

    def after(self, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """High and low states after it, and which tokens have not halted, of the tokens from `first` on."""
        high, low, thinking = self._after
        return high[:, first:], low[:, first:], thinking[:, first:]
