"""PPO's arithmetic: advantages, and the loss that both policy and value are trained with.

Schulman et al., proximal policy optimization (arXiv 1707.06347), generalized advantage estimation (arXiv 1506.02438).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from workers.recipes.clstm_ppo.options import Options

Floats = NDArray[np.float64]


def advantages(
    rewards: Floats, values: Floats, after: Floats, ended: NDArray[np.bool_], discount: float, trace: float
) -> Floats:
    """Generalized advantage estimates.

    Args:
        rewards: Shape (environments, time).
        values: What was expected before each step, same shape.
        after: What is expected after the last step, shape (environments,).
        ended: Whether an episode ended with that step, shape (environments, time). One that only ran out of time has
            what was expected of its going on in its last reward already, see `with_time_limits`.
        discount: γ.
        trace: λ.

    Returns:
        Same shape; `values` added to them are the returns that the values are trained towards.
    """
    made = np.zeros_like(values)
    advantage = np.zeros(len(values))
    for step in reversed(range(values.shape[1])):
        goes_on = 1.0 - ended[:, step]
        error = rewards[:, step] + discount * goes_on * after - values[:, step]
        advantage = error + discount * trace * goes_on * advantage
        made[:, step] = advantage
        after = values[:, step]
    return made


def with_time_limits(rewards: Floats, cut_off: NDArray[np.int64], expected: Floats, discount: float) -> Floats:
    """Rewards with what would have followed: an episode that ran out of time did not end (arXiv 1712.00378).

    Args:
        rewards: Shape (environments, time).
        cut_off: Where an episode ran out of time, shape (n, 2): environment and step.
        expected: The value of what was observed then, shape (n,).
        discount: γ.
    """
    made = rewards.copy()
    made[cut_off[:, 0], cut_off[:, 1]] += discount * expected
    return made


def log_likelihood(likely: Tensor, actions: Tensor, continuous: bool) -> Tensor:
    """The logarithm of how likely actions were.

    Args:
        likely: As `CascadedLstm` gives it, shape (…, n).
        actions: Numbers of actions, shape (…), or actions made of numbers, (…, n / 2).
        continuous: Which of the two.
    """
    if not continuous:
        return F.log_softmax(likely, -1).gather(-1, actions.long()[..., None])[..., 0]
    mean, log_std = likely.chunk(2, -1)
    apart = (actions - mean) * torch.exp(-log_std)
    each = -0.5 * apart.square() - log_std - 0.5 * math.log(2 * math.pi)
    return each.sum(-1)


def entropy(likely: Tensor, continuous: bool) -> Tensor:
    """How varied actions are, in nats, shape (…)."""
    if not continuous:
        logs = F.log_softmax(likely, -1)
        return -(logs.exp() * logs).sum(-1)
    log_std = likely.chunk(2, -1)[1]
    return (log_std + 0.5 + 0.5 * math.log(2 * math.pi)).sum(-1)


def losses(likely: Tensor, values: Tensor, batch: dict[str, Any], continuous: bool, o: Options) -> dict[str, Tensor]:
    """The loss and what it is made of, each a mean over all steps, without dimensions.

    Args:
        likely: What the policy says now, shape (batch, time, n).
        values: What it expects now, shape (batch, time).
        batch: What it said when the episodes were played: `actions`, `logs`, `values`, `advantages`, `returns`.
        continuous: As in `log_likelihood`.
        o: `clip`, `value_clip` (0: values are not clipped), `value_weight`, `entropy_weight`.
    """
    moved = log_likelihood(likely, batch["actions"], continuous) - batch["logs"]
    ratio = moved.exp()
    clipped = ratio.clamp(1 - o.clip, 1 + o.clip)
    policy = -torch.minimum(ratio * batch["advantages"], clipped * batch["advantages"]).mean()
    error = (values - batch["returns"]).square()
    if o.value_clip > 0:
        near = batch["values"] + (values - batch["values"]).clamp(-o.value_clip, o.value_clip)
        error = torch.maximum(error, (near - batch["returns"]).square())
    value = 0.5 * error.mean()
    varied = entropy(likely, continuous).mean()
    with torch.no_grad():
        kl = (ratio - 1 - moved).mean()  # never negative, and less scattered than the mean of -log ratio
        beyond = ((ratio - 1).abs() > o.clip).float().mean()
    return {
        "loss": policy + o.value_weight * value - o.entropy_weight * varied,
        "policy_loss": policy,
        "value_loss": value,
        "entropy": varied,
        "kl": kl,
        "clip_fraction": beyond,
    }
