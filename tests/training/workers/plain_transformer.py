"""A transformer of ACT-v1's layers, one after the other: what the recipe's cost is compared with."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from workers.recipes.actv1.layers import Layer, rotary_turns
from workers.recipes.actv1.model import Shape


class PlainTransformer(nn.Module):
    """As many layers as both modules of a `Shape` have, an embedding and a head; no recurrence, nothing that halts."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocab_size, shape.n_embd)
        layer, layers = (shape.n_embd, shape.n_head, shape.dropout), shape.h_layers + shape.l_layers
        self.layers = nn.ModuleList(Layer(*layer) for _ in range(layers))
        self.head = nn.Linear(shape.n_embd, shape.vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Ids of shape (batch, time) to logits of shape (batch, time, vocabulary)."""
        turns = rotary_turns(tokens.shape[1], self.shape.n_embd // self.shape.n_head, tokens.device)
        x = self.tokens(tokens)
        for part in self.layers:
            x = part(x, turns)
        logits: Tensor = self.head(x)
        return logits

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy of the targets, in nats."""
        return F.cross_entropy(self(tokens).flatten(0, 1).float(), targets.flatten())
