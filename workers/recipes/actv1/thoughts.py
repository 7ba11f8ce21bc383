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
        high, low: The states after it, shape (1, tokens, width); None before the first token.
        thinking: Which tokens have not halted after it, shape (1, tokens).
    """

    def __init__(self) -> None:
        self.kept: list[KeyValues] = []
        self.high: Tensor | None = None
        self.low: Tensor | None = None
        self.thinking: Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens that it was computed for."""
        return 0 if self.high is None else self.high.shape[1]

    def add(self, high: Tensor, low: Tensor, thinking: Tensor) -> None:
        """Takes note of the next tokens."""
        if self.high is None or self.low is None or self.thinking is None:
            self.high, self.low, self.thinking = high, low, thinking
            return
        self.high = torch.cat([self.high, high], dim=1)
        self.low = torch.cat([self.low, low], dim=1)
        self.thinking = torch.cat([self.thinking, thinking], dim=1)

    def after(self, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """States and mask of the tokens from `first` on."""
        assert self.high is not None and self.low is not None and self.thinking is not None
        return self.high[:, first:], self.low[:, first:], self.thinking[:, first:]


class Thoughts:
    """All segments of a text that is being written.

    Args:
        most: M_max, the most segments that a token may take.
    """

    def __init__(self, most: int) -> None:
        self.segments = [Segment() for _ in range(most)]
