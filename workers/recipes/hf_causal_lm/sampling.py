"""Text that a model writes while it is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rankdeck.recipe import Encoder, write_tokens


@dataclass(frozen=True, slots=True)
class Sampler:
    """Continues a prompt, always with the same random numbers: two evaluations differ by what was learned only.

    Attributes:
        encoder: The tokenizer.
        prompt: The prompt's ids.
        count: Tokens to write.
        window: Of how many tokens before it each one is written at most.
        temperature: 0 takes the likeliest token.
        seed: Of the random numbers.
        end: The id that ends a document; what would follow it is left out.
        device: The model's.
        keep_on: Asked before each token (`Run.keep_sampling`).
        keeps_past: Each token is a pass over that token alone, as long as the window holds the text. Not where the
            weights are spread over the ranks: sharding hands outputs on as copies, and a cache is none.
    """

    encoder: Encoder
    prompt: list[int]
    count: int
    window: int
    temperature: float
    seed: int
    end: int | None
    device: torch.device
    keep_on: Callable[[bool], bool] = lambda broken: not broken
    keeps_past: bool = True

    def __call__(self, model: nn.Module) -> str:
        """The text, without its prompt.

        Always the same number of passes, whatever is written: where each rank holds a part of the weights, all ranks
        have to make the same ones.
        """
        generator = torch.Generator().manual_seed(self.seed)
        prompt = torch.tensor(self.prompt, device=self.device)
        past: Any = None
        known = 0

        def next_logits(text: Tensor) -> Tensor:
            nonlocal past, known
            fits = self.keeps_past and len(text) <= self.window
            if fits and past is not None:
                found = model(input_ids=text[None, known:], past_key_values=past, use_cache=True)
            else:
                found = model(input_ids=text[None, -self.window :], use_cache=fits)
            # Models that keep their past in another form (state spaces) have none by this name.
            past, known = (getattr(found, "past_key_values", None), len(text)) if fits else (None, 0)
            logits: Tensor = found.logits[0, -1]
            return logits[: self.encoder.vocab_size]  # models often have more rows than there are tokens

        text = write_tokens(next_logits, prompt, self.count, self.temperature, generator, self.keep_on)
        written = text[len(self.prompt) :].tolist()
        return self.encoder.decode(written[: written.index(self.end)] if self.end in written else written)
