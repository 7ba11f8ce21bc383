"""Next-token logits for a text that a model of transformers writes while it is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def writer(model: nn.Module, window: int, vocab_size: int, *, keeps_past: bool = True) -> Callable[[Tensor], Tensor]:
    """Gives the logits of the token after a text, shape (time,), that grows by a token at each call.

    Args:
        model: In evaluation mode.
        window: Of how many tokens before it each one is written at most.
        vocab_size: Tokens that there are; models often have more rows.
        keeps_past: Each call is a pass over the new token alone, as long as the window holds the text. Not where the
            weights are spread over the ranks: sharding hands outputs on as copies, and a cache is none.
    """
    past: Any = None
    known = 0

    def next_logits(text: Tensor) -> Tensor:
        nonlocal past, known
        fits = keeps_past and len(text) <= window
        if fits and past is not None:
            found = model(input_ids=text[None, known:], past_key_values=past, use_cache=True)
        else:
            found = model(input_ids=text[None, -window:], use_cache=fits)
        # Models that keep their past in another form (state spaces) have none by this name.
        past, known = (getattr(found, "past_key_values", None), len(text)) if fits else (None, 0)
        logits: Tensor = found.logits[0, -1]
        return logits[:vocab_size]

    return next_logits
