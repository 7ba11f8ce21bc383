"""Writes tokens one after the other, as the recipes for text do when they sample."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F


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
    """Continues `prompt`, shape (time,), by at most `count` tokens; returns both.

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
