"""Key-value cache of attention: without it each new token costs a pass over the whole text before it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class KeyValues:
    """One attention layer's, shape (batch, heads, time, head width) each; empty at first."""

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self._keys is None else self._keys.shape[-2]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the next tokens' keys and values; returns all."""
        if self._keys is None or self._values is None:
            self._keys, self._values = keys, values
        else:
            self._keys = torch.cat([self._keys, keys], dim=-2)
            self._values = torch.cat([self._values, values], dim=-2)
        return self._keys, self._values


def attend(q: Tensor, k: Tensor, v: Tensor, kept: KeyValues | None = None, dropout: float = 0.0) -> Tensor:
    """Causal attention, shape (batch, heads, time, head width) in and out.

    `kept`: keys and values of earlier tokens, which these are added to; None where this pass has the whole text.
    """
    known = 0 if kept is None else kept.length
    if kept is not None:
        k, v = kept.extend(k, v)
    if known == 0:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
    # `is_causal` would align the first new token with the first of all (it is "top-left" aligned).
    new = q.shape[-2]
    seen = torch.ones(new, known + new, dtype=torch.bool, device=q.device).tril(known) if new > 1 else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropout)
