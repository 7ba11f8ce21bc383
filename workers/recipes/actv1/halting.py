"""Halting of each token, taught by Q-learning over two actions: halt and continue.

After "Adaptive computational time (ACT)" in arXiv 2506.21734. There a whole puzzle halts, and is right or wrong; here
each token does, and is right when the likeliest next token is the one that follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from rankdeck.recipe import LossAndMetrics

# What each segment of a batch came to; shapes begin with (segments, batch, time).
# `losses`: cross-entropy in nats. `right`: whether the likeliest token was the one. `q`: logits of the values of
# halting and of going on, in a last dimension of 2. `thinking`: whether the token had not halted before this segment.
# After each segment in which a token thinks follows another one, up to M_max: what going on would have been worth is
# read off it.
Segments = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Rule:
    """How halting is taught.

    Attributes:
        most: M_max, the most segments that a token may take.
        q_weight: How much the halting head's loss counts beside the cross-entropy.
        price: What one more segment costs, in chances of being right: going on is worth so much less.
    """

    most: int
    q_weight: float = 0.5
    price: float = 0.0


def least_steps(shape: tuple[int, ...], most: int, exploration: float, device: torch.device) -> Tensor | None:
    """M_min of each token: 1, or with the chance `exploration` a number from 2 to `most`, all alike likely.

    Args:
        shape: (batch, time). On a CPU a row draws the same numbers however a batch is cut into micro-batches.
        most: M_max.
        exploration: The chance.
        device: Where the tokens are.

    Returns:
        Numbers of the given shape; None where all are 1.
    """
    if exploration <= 0 or most < 2:
        return None
    chance, share = torch.rand((shape[0], 2, *shape[1:]), device=device).unbind(1)
    drawn = 2 + (share * (most - 1)).long().clamp(max=most - 2)
    return torch.where(chance < exploration, drawn, 1)


def halts(q: Tensor, number: int, least: Tensor | None) -> Tensor:
    """Which tokens halt after segment `number`: Q̂_halt > Q̂_continue and M_min is reached. (At M_max all do.)"""
    wants = q[..., 0] > q[..., 1]
    return wants if least is None else wants & (least <= number)


def continue_targets(q: Tensor, rule: Rule) -> Tensor:
    """Ĝ_continue of every segment but the last one computed, shape (segments - 1, batch, time).

    Ĝ^m_continue = Q̂^{m+1}_halt if m + 1 = M_max, else max(Q̂^{m+1}_halt, Q̂^{m+1}_continue), less the price. The next
    segment's values are at hand for a token that halted in this one too: it was computed along, and then forgotten.
    """
    following = q.detach()[1:].sigmoid()
    best = following.amax(-1)
    if len(q) == rule.most:
        best = torch.cat([best[:-1], following[-1:, ..., 0]])
    return (best - rule.price).clamp(min=0.0)


def judge(segments: Segments, rule: Rule) -> LossAndMetrics:
    """What is minimised, and what is charted: means over a batch's samples, none of which depends on the others.

    `loss` and `accuracy` are of the answers, each taken from its token's last segment, `halt_steps_mean` is the
    segments that a token took, `q_loss` the halting head's loss, `objective` what is minimised.

    "Deep supervision": every segment of every token that is still thinking is told the right answer, L^m = Loss(ŷ^m, y)
    + weight · BCE(Q̂^m, Ĝ^m), where Ĝ^m_halt = 1{ŷ^m = y}. The paper makes an update after each segment; here a batch's
    segments make one together, so that an update has seen exactly its batch: the mean over the samples of each one's
    mean over the segments in which its tokens think. So it is the same however a batch is cut into micro-batches.
    """
    q, right, thinking = segments["q"], segments["right"], segments["thinking"]
    counted = thinking.float()
    weights = counted / counted.sum((0, 2), keepdim=True) / thinking.shape[1]
    halting = F.binary_cross_entropy_with_logits(q[..., 0], right.float(), reduction="none")
    q_loss = (halting * weights).sum()
    if len(q) > 1:
        going_on = F.binary_cross_entropy_with_logits(q[:-1, ..., 1], continue_targets(q, rule), reduction="none")
        q_loss = q_loss + (going_on * weights[:-1]).sum()
    answer_losses = (segments["losses"] * weights).sum()
    steps = thinking.sum(0)
    last = (steps - 1)[None]
    objective = answer_losses + rule.q_weight * q_loss
    metrics = {
        "loss": segments["losses"].detach().gather(0, last).mean(),
        "halt_steps_mean": steps.float().mean(),
        "accuracy": right.gather(0, last).float().mean(),
        "q_loss": q_loss.detach(),
        "objective": objective.detach(),
    }
    return LossAndMetrics(objective, metrics)
