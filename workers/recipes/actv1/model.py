"""The hierarchical recurrent model: two stacks of layers that take turns, and a head that says when to stop.

After Wang et al., Hierarchical Reasoning Model, arXiv 2506.21734; section and equation names below are theirs. Made
into a language model: attention is causal, and each token halts by itself, so that what a token sees and how long it
thinks depend on nothing after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from workers.recipes.actv1.halting import Segments, halts, least_steps
from workers.recipes.actv1.layers import Layer, init_linear, normed, rotary_turns


@dataclass(frozen=True, slots=True)
class Shape:
    """The model's dimensions.

    Attributes:
        vocab_size: Tokens.
        seq_len: Tokens that the model looks back on when it writes.
        n_embd, n_head, dropout: What a layer of either stack is like, see `Layer`.
        h_layers, l_layers: Layers of the high and of the low module.
        h_cycles, l_cycles: N and T: a segment is N updates of the high module, T of the low one before each.
        halt_max_steps: M_max, the most segments that a token may take.
        halt_exploration: ε, the chance that a token in training has to take a random number of segments at least.
        every_segment: All M_max segments are computed, also when every token has halted; the outcome is the same.
        grad_checkpointing: Activations are computed again on the way back instead of being kept.
    """

    vocab_size: int
    seq_len: int
    n_embd: int
    n_head: int
    dropout: float = 0.0
    h_layers: int = 2
    l_layers: int = 2
    h_cycles: int = 1
    l_cycles: int = 1
    halt_max_steps: int = 4
    halt_exploration: float = 0.1
    every_segment: bool = False
    grad_checkpointing: bool = False


class HierarchicalModel(nn.Module):
    """Predicts the next token, thinking about each for as many segments as its halting head thinks worth it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, layer = shape.n_embd, (shape.n_embd, shape.n_head, shape.dropout)
        self.tokens = nn.Embedding(shape.vocab_size, width)
        self.low = nn.ModuleList(Layer(*layer) for _ in range(shape.l_layers))
        self.high = nn.ModuleList(Layer(*layer) for _ in range(shape.h_layers))
        self.head = nn.Linear(width, shape.vocab_size, bias=False)
        self.q_head = nn.Linear(width, 2)
        self._init_weights()

    def forward(self, tokens: Tensor, targets: Tensor | None = None, *, last_only: bool = False) -> Tensor | Segments:
        """Thinks segment after segment until every token has halted.

        Args:
            tokens: Ids, shape (batch, time).
            targets: The tokens that follow them, same shape.
            last_only: Only the last token of each row is wanted.

        Returns:
            With targets, what each segment came to (see `Segments`). Without, logits after each token's last segment,
            shape (batch, time, vocabulary), or (batch, vocabulary) for the last token only.
        """
        x = self.tokens(tokens) * math.sqrt(self.shape.n_embd)  # as large as a state
        turns = rotary_turns(tokens.shape[1], self.shape.n_embd // self.shape.n_head, x.device)
        most, exploration = self.shape.halt_max_steps, self.shape.halt_exploration if self.training else 0.0
        least = least_steps(tokens.shape, most, exploration, x.device)
        high = low = torch.zeros_like(x, dtype=torch.float32)
        thinking = torch.ones(tokens.shape, dtype=torch.bool, device=x.device)
        answers: list[tuple[Tensor, Tensor, Tensor]] = []
        masks: list[Tensor] = []
        looks_ahead = False
        for number in range(1, most + 1):
            with torch.set_grad_enabled(torch.is_grad_enabled() and not looks_ahead):
                new_high, new_low = self._segment(x, high.detach(), low.detach(), turns)
                if targets is None:
                    q = self.q_head(new_high).float()
                else:
                    answers.append(self._checkpointed(self._answer, new_high, targets))
                    masks.append(thinking)
                    q = answers[-1][2].detach()
            if looks_ahead:
                break
            # A halted token's state stays as it was: what others see of it no longer changes.
            high = new_high if number == 1 else torch.where(thinking[..., None], new_high, high)
            low = new_low if number == 1 else torch.where(thinking[..., None], new_low, low)
            if number < most:
                thinking = thinking & ~halts(q, number, least)
                if not self.shape.every_segment and not (thinking[:, -1] if last_only else thinking).any():
                    if targets is None:
                        break
                    # One more, without a gradient: it tells those that halted last what going on would have been worth.
                    looks_ahead = True
        if targets is None:
            logits: Tensor = self.head(high[:, -1] if last_only else high)
            return logits
        names = ("losses", "right", "q")
        found = {name: torch.stack(parts) for name, parts in zip(names, zip(*answers, strict=True), strict=True)}
        return {**found, "thinking": torch.stack(masks)}

    def _segment(self, x: Tensor, high: Tensor, low: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
        """N·T updates of the low state, N of the high one ("Hierarchical Reasoning Model", the update rules z_L, z_H).

        z_L ← f_L(z_L + z_H + x̃) at each update, z_H ← f_H(z_H + z_L) after every T of them. Only the last update of
        each is differentiated ("Approximate gradient", the one-step approximation): memory does not grow with N·T.

        Two things differ from the paper. The states begin as zeros instead of a fixed random vector, so that the very
        first update of the low module sees x̃ alone, and of the high one the low one's outcome alone: one segment with
        N = T = 1 is a plain transformer of the two stacks. And the sums are normalised, so that the same layers serve
        a first segment, in which one summand is not zero, as well as later ones, in which all three are not.
        """
        low_updates = self.shape.h_cycles * self.shape.l_cycles
        with torch.no_grad():
            for number in range(1, low_updates):
                low = self._stack(self.low, low + high + x, turns)
                if number % self.shape.l_cycles == 0:
                    high = self._stack(self.high, high + low, turns)
        if low_updates > 1:
            # Autocast keeps the weights it has converted, in some versions of PyTorch also those without a gradient.
            torch.clear_autocast_cache()
        low = self._stack(self.low, low + high + x, turns)
        high = self._stack(self.high, high + low, turns)
        return high, low

    def _stack(self, layers: nn.ModuleList, x: Tensor, turns: Tensor) -> Tensor:
        x = normed(x)
        for layer in layers:
            x = self._checkpointed(layer, x, turns)
        return x

    def _answer(self, high: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What a segment's high state says: loss in nats and whether it is right, (batch, time); Q̂, (batch, time, 2).

        Q̂ are logits, of the values of halting and of going on: Q̂ = σ(θ_Q^T z_H) ("Adaptive computational time").
        """
        logits = self.head(high).float()
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
        return losses, logits.argmax(-1) == targets, self.q_head(high).float()

    def _checkpointed(self, part: Callable[..., Any], *inputs: Tensor) -> Any:
        if self.shape.grad_checkpointing and self.training and torch.is_grad_enabled():
            return checkpoint(part, *inputs, use_reentrant=False)
        return part(*inputs)

    def writer(self) -> Callable[[Tensor], Tensor]:
        """A function for the logits of the token after a text, shape (time,); it thinks until that token halts."""

        def next_logits(text: Tensor) -> Tensor:
            logits: Tensor = self(text[None, -self.shape.seq_len :], last_only=True)[0]
            return logits

        return next_logits

    def _init_weights(self) -> None:
        """LeCun's; the heads begin by knowing nothing, and by valuing halting and going on alike."""
        for module in [*self.low.modules(), *self.high.modules()]:
            if isinstance(module, nn.Linear):
                init_linear(module.weight)
        nn.init.normal_(self.tokens.weight, 0.0, 1 / math.sqrt(self.shape.n_embd))
        nn.init.normal_(self.head.weight, 0.0, 0.02)
        nn.init.zeros_(self.q_head.weight)
        nn.init.zeros_(self.q_head.bias)
