"""A cascaded-LSTM actor-critic: one LSTM makes features of the observations, two more act on them and judge them.

The cascade is that of Zou et al. (arXiv 2212.02721). The LSTMs' state is the only memory of the past.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# Where each step of each row comes from, (rows, time); where each step went, (batch · time,); which row continues from
# what was carried, (batch,). See `parts_of`.
Parts = tuple[Tensor, Tensor, Tensor]

# Features, actor, critic; each carries two vectors.
LSTMS: Final = 3


class CascadedLstm(nn.Module):
    """From observations to action likelihoods and values.

    The carried state has shape (batch, 3, 2, hidden): h and c of each LSTM.

    Args:
        observation: Numbers observed in a step.
        actions: Actions to choose from, or numbers that make one action.
        continuous: Actions are numbers, drawn from a normal distribution.
        width: Of each LSTM.
    """

    def __init__(self, observation: int, actions: int, continuous: bool, width: int) -> None:
        super().__init__()
        self.observation, self.actions, self.continuous, self.width = observation, actions, continuous, width
        self.encode = nn.Linear(observation, width)
        self.features = nn.LSTM(width, width, batch_first=True)
        self.actor = nn.LSTM(width, width, batch_first=True)
        self.critic = nn.LSTM(width, width, batch_first=True)
        self.act = nn.Linear(width, actions)
        self.judge = nn.Linear(width, 1)
        if continuous:
            self.log_std = nn.Parameter(torch.full((actions,), -0.5))
        self._init_weights()

    def start(self, batch: int) -> Tensor:
        return torch.zeros(batch, LSTMS, 2, self.width)

    def forward(
        self, observed: Tensor, carried: Tensor, fresh: Tensor, parts: Parts | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A stretch of steps.

        Args:
            observed: Shape (batch, time, observation).
            carried: From the step before the first one.
            fresh: Whether an episode begins with the first step, into which nothing is carried then; shape (batch,).
            parts: Later beginnings of episodes; None for none.

        Returns:
            Logits of actions, shape (batch, time, actions); of actions made of numbers their mean, and after it the
            logarithm of their standard deviation, (batch, time, 2 · actions). Values, (batch, time). The carried state,
            where there are no parts.
        """
        kept = carried * (~fresh).to(carried.dtype)[:, None, None, None]
        x = torch.tanh(self.encode(observed))
        if parts is not None:
            source, back, first = parts
            x = x.flatten(0, 1)[source]
            kept = kept.new_zeros(len(source), *kept.shape[1:]).index_copy(0, first, kept)
        x, features = _through(self.features, x, kept[:, 0])
        acted, actor = _through(self.actor, x, kept[:, 1])
        judged, critic = _through(self.critic, x, kept[:, 2])
        if parts is not None:
            acted, judged = (y.flatten(0, 1)[back].view(*observed.shape[:2], -1) for y in (acted, judged))
        likely = self.act(acted).float()
        if self.continuous:
            likely = torch.cat([likely, self.log_std.float().expand_as(likely)], -1)
        return likely, self.judge(judged)[..., 0].float(), torch.stack([features, actor, critic], 1)

    def _init_weights(self) -> None:
        """Orthogonal, the actor's last layer small: all actions begin about equally likely (arXiv 2006.05990)."""
        width = self.width
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                for block in parameter.chunk(4) if "_l0" in name else (parameter,):  # an LSTM's four gates
                    nn.init.orthogonal_(block)
        with torch.no_grad():
            self.act.weight.mul_(0.01)
            for lstm in (self.features, self.actor, self.critic):
                forget = slice(width, 2 * width)
                lstm.get_parameter("bias_ih_l0")[forget].fill_(1.0)  # what is carried is kept at first


def parts_of(fresh: NDArray[np.bool_]) -> Parts | None:
    """Stretches in which episodes begin, cut so that each part of an episode becomes a row of its own.

    An LSTM then makes one pass over rows that end in padding, instead of a pass for every step at which some episode
    begins. `fresh`: the first steps of episodes, shape (batch, time).
    """
    if not fresh[:, 1:].any():
        return None
    batch, time = fresh.shape
    begins = fresh.copy()
    begins[:, 0] = True
    row = begins.reshape(-1).cumsum() - 1
    begun = np.flatnonzero(begins.reshape(-1))
    offset = np.arange(batch * time) - begun[row]
    source = np.zeros((len(begun), int(offset.max()) + 1), dtype=np.int64)
    source[row, offset] = np.arange(batch * time)
    back = row * source.shape[1] + offset
    return torch.from_numpy(source), torch.from_numpy(back), torch.from_numpy(row.reshape(batch, time)[:, 0].copy())


def _through(lstm: nn.LSTM, x: Tensor, carried: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM over x, shape (batch, time, width), from h and c of shape (batch, 2, hidden); its new h and c.

    On a CPU it computes in its weights' precision: of autocast's bf16, oneDNN makes an LSTM on some CPUs only.
    """
    with torch.autocast("cpu", enabled=False) if x.device.type == "cpu" else nullcontext():
        if x.device.type == "cpu":
            kept = next(lstm.parameters()).dtype
            x, carried = x.to(kept), carried.to(kept)
        h, c = carried.unbind(1)
        y, (h, c) = lstm(x, (h[None].contiguous(), c[None].contiguous()))
    return y, torch.stack([h[0], c[0]], 1)
