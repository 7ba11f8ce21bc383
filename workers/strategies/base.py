"""What a way of sharing the work among ranks has to provide.

The trainer is the only caller, always from the training thread, in this order:

1. `setup` once, after the data is ready: process groups are made here;
2. `wrap` and `optimizer` once each, after the model stands on its device;
3. at every micro-batch `accumulate` around forward and backward; at every optimizer step `clip_grad_norm`;
4. `agree` once at every step boundary, `total` at every evaluation;
5. at a commit `files` decides which part of the state this rank writes, at resume `sources` which it reads;
6. `close` once, at the end.

A *lane* is a group of ranks that consume the same chunks in step (`core.ledger`). `lane_rank` and `lane_size`
are this rank's place in its lane.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

ParameterGroups = Iterable[Tensor] | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Which rank this is and what it runs on.

    Attributes:
        rank, world_size: Place among all ranks of the run.
        device: Where the model stands.
        backend: "gloo", "nccl", or "" for none.
        rendezvous: A `file://` URL that all ranks of this attempt share.
        timeout_s: How long a collective may take before its rank gives up.
    """

    rank: int
    world_size: int
    device: torch.device
    backend: str = ""
    rendezvous: str = ""
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class StateFiles:
    """Names in a generation's folder of what one rank writes; None: another rank writes that part."""

    weights: str | None
    optimizer: str | None


class Strategy(ABC):
    """One way of sharing the work; see the module's docstring for who calls what and when."""

    name: str

    def __init__(self, place: RankPlace) -> None:
        self.place = place

    @property
    def lane(self) -> int:
        """Which lane this rank belongs to."""
        return 0

    @property
    def lane_rank(self) -> int:
        """This rank's place in its lane."""
        return self.place.rank

    @property
    def lane_size(self) -> int:
        """Ranks in this rank's lane."""
        return self.place.world_size

    @property
    def synchronised(self) -> bool:
        """True when all ranks train in step on one lane."""
        return True

    @property
    def lanes(self) -> int:
        """Lanes of the run."""
        return 1 if self.synchronised else self.place.world_size

    def setup(self) -> None:
        """Makes what the ranks need to talk to each other."""
        return

    def close(self) -> None:
        """Undoes `setup`."""
        return

    def wrap(self, model: nn.Module) -> nn.Module:
        """The module to call in training; the given one keeps the parameters."""
        return model

    def optimizer(self, groups: ParameterGroups, kind: Callable[..., Optimizer], **options: Any) -> Optimizer:
        """An optimizer of class `kind` over these parameters."""
        return kind(groups, **options)

    def accumulate(self, wrapped: nn.Module, *, last: bool) -> AbstractContextManager[object]:
        """The context for one micro-batch; gradients are exchanged in the `last` one of a step."""
        del wrapped, last
        return nullcontext()

    def clip_grad_norm(self, parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
        """The norm of the whole gradient before clipping; 0 as `limit` only measures.

        Returns:
            A tensor without dimensions on the model's device.
        """
        return nn.utils.clip_grad_norm_(parameters, limit if limit > 0 else float("inf"), foreach=True)

    def agree(self, flag: int) -> int:
        """The highest flag that any rank of the lane has given, possibly one step late; every rank gets the same."""
        return flag

    def settle(self) -> int:
        """The answer to the last `agree` that is still out, for ranks that make no further step."""
        return 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the lane's ranks, in double precision."""
        return list(values)

    def sync_wait_s(self, wrapped: nn.Module) -> float | None:
        """Seconds the last step waited for other ranks, None where that cannot be measured."""
        del wrapped
        return None

    @abstractmethod
    def files(self) -> StateFiles:
        """What this rank writes into a generation."""

    @abstractmethod
    def sources(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of weights and of optimizer parts to read, the first that exists wins (see `workers.checkpoint`)."""


def optimizer_state(optimizer: Optimizer) -> dict[Any, Any]:
    """The per-parameter state that this rank holds, keyed by parameter."""
    local = getattr(optimizer, "optim", optimizer)  # ZeroRedundancyOptimizer keeps its shard in `.optim`
    return dict(local.state)
