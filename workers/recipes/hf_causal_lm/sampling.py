"""Text that a model writes while it is trained."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from workers.recipe_api import Encoder


@dataclass(frozen=True, slots=True)
class Sampler:
    """Goes on from a prompt, always with the same random numbers: two evaluations differ by what was learned only.

    Attributes:
        encoder: The tokenizer.
        prompt: The prompt's ids.
        count: Tokens to write.
        window: Of how many tokens before it each one is written at most.
        temperature: 0 takes the likeliest token.
        seed: Of the random numbers.
        end: The id that ends a document; what would follow it is left out.
        device: The model's.
    """

    encoder: Encoder
    prompt: list[int]
    count: int
    window: int
    temperature: float
    seed: int
    end: int | None
    device: torch.device

    def __call__(self, model: nn.Module) -> str:
        """The text, without its prompt.

        Always the same number of passes, whatever is written: where each rank holds a part of the weights, all ranks
        have to make the same ones.
        """
        generator = torch.Generator().manual_seed(self.seed)
        text = torch.tensor(self.prompt, device=self.device)
        for _ in range(self.count):
            logits = model(input_ids=text[None, -self.window :], use_cache=False).logits[0, -1].float()
            logits = logits[: self.encoder.vocab_size]  # models often have more rows than there are tokens
            if self.temperature > 0:
                chances = F.softmax(logits / self.temperature, dim=-1).cpu()
                chosen = torch.multinomial(chances, 1, generator=generator).to(self.device)
            else:
                chosen = logits.argmax().view(1)
            text = torch.cat([text, chosen])
        written = text[len(self.prompt) :].tolist()
        return self.encoder.decode(written[: written.index(self.end)] if self.end in written else written)
