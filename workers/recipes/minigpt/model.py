"""A small GPT: pre-norm blocks, causal attention through `scaled_dot_product_attention`, tied embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from rankdeck.recipe import KeyValues, attend


@dataclass(frozen=True, slots=True)
class Shape:
    vocab_size: int
    seq_len: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float = 0.0
    grad_checkpointing: bool = False
    bias: bool = True


class Attention(nn.Module):
    """Causal self-attention over `n_head` heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.n_head = shape.n_head
        self.dropout = shape.dropout
        self.qkv = nn.Linear(shape.n_embd, 3 * shape.n_embd, bias=False)
        self.out = nn.Linear(shape.n_embd, shape.n_embd, bias=False)

    def forward(self, x: Tensor, kept: KeyValues | None = None) -> Tensor:
        """Shape (batch, time, width) in and out; `kept` is of the tokens before these."""
        batch, time, width = x.shape
        # `split` joins the three gradients in one copy; `unbind` of a view would stack them, and copy the stack again.
        parts = self.qkv(x).split(width, dim=2)
        q, k, v = (part.view(batch, time, self.n_head, -1).transpose(1, 2) for part in parts)
        dropout = self.dropout if self.training else 0.0
        y = attend(q, k, v, kept, dropout)
        out: Tensor = self.out(y.transpose(1, 2).reshape(batch, time, width))
        return out


class Block(nn.Module):
    """x + attention, x + feed-forward, each behind a layer norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.n_embd, bias=shape.bias)
        self.attention = Attention(shape)
        self.norm2 = nn.LayerNorm(shape.n_embd, bias=shape.bias)
        self.up = nn.Linear(shape.n_embd, 4 * shape.n_embd, bias=shape.bias)
        self.down = nn.Linear(4 * shape.n_embd, shape.n_embd, bias=shape.bias)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, kept: KeyValues | None = None) -> Tensor:
        """Shape (batch, time, width) in and out."""
        x = x + self.dropout(self.attention(self.norm1(x), kept))
        out: Tensor = x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))
        return out


class MiniGPT(nn.Module):
    """Predicts the next token. The output layer is the token embedding itself (Press and Wolf, arXiv 1608.05859)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocab_size, shape.n_embd)
        self.positions = nn.Embedding(shape.seq_len, shape.n_embd)
        self.dropout = nn.Dropout(shape.dropout)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.n_layer))
        self.norm = nn.LayerNorm(shape.n_embd, bias=shape.bias)
        self._init_weights()

    def forward(self, tokens: Tensor, kept: list[KeyValues] | None = None) -> Tensor:
        """Token ids of shape (batch, time) to logits of shape (batch, time, vocabulary).

        `kept`: keys and values of earlier tokens for each layer, extended by these; None where this is the whole text.
        """
        first = 0 if kept is None else kept[0].length
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(places))
        for number, block in enumerate(self.blocks):
            if self.shape.grad_checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x, None if kept is None else kept[number])
        return F.linear(self.norm(x), self.tokens.weight)

    def writer(self) -> Callable[[Tensor], Tensor]:
        """Give the logits of the token after a text, shape (time,), that grows by a token at each call.

        Each call is one pass over the new token alone, until the text is longer than the model looks back: from there
        on every token of the window has another position at each step, so nothing can be kept.
        """
        kept = [KeyValues() for _ in self.blocks]

        def next_logits(text: Tensor) -> Tensor:
            if len(text) > self.shape.seq_len:
                logits: Tensor = self(text[None, -self.shape.seq_len :])[0, -1]
            else:
                logits = self(text[None, kept[0].length :], kept)[0, -1]
            return logits

        return next_logits

    def _init_weights(self) -> None:
        """GPT-2's: normal with 0.02, and what is added to the residual stream smaller the deeper the model is."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() >= 2:
                into_residual = name.endswith(("out.weight", "down.weight"))
                std = 0.02 / math.sqrt(2 * self.shape.n_layer) if into_residual else 0.02
                nn.init.normal_(parameter, 0.0, std)
