"""PPO's arithmetic: advantages, and the loss of policy and value.

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
    """Generalized advantage estimates; `values` added to them are the returns that the values are trained towards.

    Args:
        rewards: Shape (environments, time).
        values: Values before each step, same shape.
        after: Values after the last step, shape (environments,).
        ended: Ends of episodes, shape (environments, time). One that only ran out of time has its value in its last
            reward already, see `with_time_limits`.
        discount: γ.
        trace: λ.
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
    """Rewards plus the value after a time limit: an episode that ran out of time did not end (arXiv 1712.00378).

    Args:
        rewards: Shape (environments, time).
        cut_off: Environment and step of each time limit, shape (n, 2).
        expected: The value of the observation then, shape (n,).
        discount: γ.
    """
    made = rewards.copy()
    made[cut_off[:, 0], cut_off[:, 1]] += discount * expected
    return made


def log_likelihood(likely: Tensor, actions: Tensor, continuous: bool) -> Tensor:
    """The log-likelihood of actions, (…) or (…, n / 2) for ones made of numbers; `likely` is the policy's, (…, n)."""
    if not continuous:
        return F.log_softmax(likely, -1).gather(-1, actions.long()[..., None])[..., 0]
    mean, log_std = likely.chunk(2, -1)
    apart = (actions - mean) * torch.exp(-log_std)
    each = -0.5 * apart.square() - log_std - 0.5 * math.log(2 * math.pi)
    return each.sum(-1)


def entropy(likely: Tensor, continuous: bool) -> Tensor:
    """The actions' entropy in nats, shape (…)."""
    if not continuous:
        logs = F.log_softmax(likely, -1)
        return -(logs.exp() * logs).sum(-1)
    log_std = likely.chunk(2, -1)[1]
    return (log_std + 0.5 + 0.5 * math.log(2 * math.pi)).sum(-1)


def losses(likely: Tensor, values: Tensor, batch: dict[str, Any], continuous: bool, o: Options) -> dict[str, Tensor]:
    """The loss and its parts, each a mean over all steps, without dimensions.

    Args:
        likely: The policy's output now, shape (batch, time, n).
        values: Its values now, shape (batch, time).
        batch: Its output when the episodes were played: `actions`, `logs`, `values`, `advantages`, `returns`.
        continuous: Whether actions are made of numbers.
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
        # Never negative, and less scattered than the mean of -log ratio.
        kl = (ratio - 1 - moved).mean()
        beyond = ((ratio - 1).abs() > o.clip).float().mean()
    return {
        "loss": policy + o.value_weight * value - o.entropy_weight * varied,
        "policy_loss": policy,
        "value_loss": value,
        "entropy": varied,
        "kl": kl,
        "clip_fraction": beyond,
    }
