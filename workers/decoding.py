"""Text sampling: tokens written one after the other, and attention's key-value cache.

Without the cache each new token costs a pass over the whole text before it.
"""

from __future__ import annotations

from collections.abc import Callable

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
        """Add the next tokens' keys and values; return all."""
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


class WeightsNotFiniteError(Exception):
    """Raised where the model's probabilities are NaN."""


@torch.no_grad()
def write_tokens(
    next_logits: Callable[[Tensor], Tensor],
    prompt: Tensor,
    count: int,
    temperature: float,
    generator: torch.Generator,
    keep_on: Callable[[bool], bool] = lambda broken: not broken,
) -> Tensor:
    """Continue `prompt`, shape (time,), by at most `count` tokens; return both.

    Args:
        next_logits: The logits of the token after a text, shape (vocabulary,); the text grows by a token at each call.
        prompt: Token ids.
        count: Tokens to write.
        temperature: 0 takes the likeliest token.
        generator: A CPU generator: the text is the same on any device.
        keep_on: Asked before each token, with whether the probabilities are NaN (`Run.keep_sampling`). Where every
            rank takes part in each pass, it has all of them end at the same token.
    """
    text, broken = prompt, False
    for _ in range(count):
        if not keep_on(broken):
            break
        logits = next_logits(text).float()
        chances = F.softmax(logits / temperature if temperature > 0 else logits, dim=-1).cpu()
        broken = broken or bool(chances.isnan().any())
        if broken:
            chosen = torch.zeros(1, dtype=text.dtype)
        elif temperature > 0:
            chosen = torch.multinomial(chances, 1, generator=generator)
        else:
            chosen = logits.argmax().view(1)
        text = torch.cat([text, chosen.to(text.device)])
    if broken:
        raise WeightsNotFiniteError
    return text
