"""One transformer layer as the recurrent modules stack it: rotary attention and SwiGLU, normalised after each sum.

Post-norm (arXiv 2506.21734, section 2) keeps the size of a state the same however often a module is applied to its own
outcome; pre-norm would let it grow with every pass.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rankdeck.recipe import attend


class Layer(nn.Module):
    """norm(x + attention(x)), then norm(x + feed-forward(x)); no biases, norms without weights.

    Args:
        width: A multiple of `n_head`, and width over heads is even.
        n_head: Attention heads.
        dropout: Share of a sublayer's output that is set to zero while training.
    """

    def __init__(self, width: int, n_head: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        # 8/3 of the width makes SwiGLU's three matrices as large as the usual two (Shazeer, arXiv 2002.05202).
        inner = max(8, 8 * round(width / 3))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        """Shape (batch, time, width) in and out; `turns` as `rotary_turns` gives them."""
        x = normed(x + self._dropped(self._attention(x, turns)))
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return normed(x + self._dropped(self.down(F.silu(gate) * up)))

    def _attention(self, x: Tensor, turns: Tensor) -> Tensor:
        batch, time, width = x.shape
        # Whose backward pass copies once, see minigpt's model.
        parts = self.qkv(x).split(width, dim=2)
        q, k, v = (part.view(batch, time, self.n_head, -1).transpose(1, 2) for part in parts)
        y = attend(_turned(q, turns), _turned(k, turns), v)
        out: Tensor = self.out(y.transpose(1, 2).reshape(batch, time, width))
        return out

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


def normed(x: Tensor) -> Tensor:
    """Root mean square 1 over the width, in fp32 (RMSNorm, arXiv 1910.07467, without a gain)."""
    return F.rms_norm(x.float(), (x.shape[-1],), eps=1e-5)


def rotary_turns(time: int, head_width: int, device: torch.device) -> Tensor:
    """Cosine and sine of the angle by which each pair of features turns at each place; shape (2, time, head_width / 2).

    Rotary positions, Su et al., arXiv 2104.09864, equation 15, with the usual base 10000.
    """
    pairs = torch.arange(0, head_width, 2, device=device, dtype=torch.float32)
    speeds = 10_000.0 ** (-pairs / head_width)
    angles = torch.arange(time, device=device, dtype=torch.float32)[:, None] * speeds
    return torch.stack([angles.cos(), angles.sin()])


def init_linear(weight: Tensor) -> None:
    """Normal, cut at two deviations, with the deviation 1/√(inputs) (LeCun): outputs as large as inputs."""
    nn.init.trunc_normal_(weight, 0.0, deviation := 1 / math.sqrt(weight.shape[1]), -2 * deviation, 2 * deviation)


def _turned(x: Tensor, turns: Tensor) -> Tensor:
    """Turn pairs of features, the first half of a head with the second; shape (batch, heads, time, head_width)."""
    cos, sin = turns.to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
