"""Strategy: the interface of a way to share the work among ranks.

The trainer alone calls it, in this order: `setup` once, after the data is ready; `replicate` once, after the model
stands on its device; `agree` at every step boundary, `total` at every evaluation; `close` at the end.

A *replica group* is a group of ranks that train one copy of the weights: they consume the same chunks in step
(`core.ledger.ledger`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies.replica import Replica


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A rank's number, device, and connection to the others.

    Attributes:
        backend: "gloo", "nccl", or "" for none.
        rendezvous: A `file://` URL that all ranks of this attempt share; of several machines, a `tcp://` one.
        timeout_s: Limit of a collective.
        nodes: Machines that the ranks are on.
        nic: The network interface that connects them; empty: loopback.
    """

    rank: int
    world_size: int
    device: torch.device
    backend: str = ""
    rendezvous: str = ""
    timeout_s: float = 300.0
    nodes: int = 1
    nic: str = ""


class Strategy(ABC):
    """One way of sharing the work.

    Attributes:
        name: The mode's.
        synchronised: All ranks train in step, as one replica group.
        replica_group: The number of this rank's group.
        group_rank, group_size: This rank's place in its replica group, and the group's ranks.
        forward_is_collective: Every forward pass needs all ranks, because each holds only a part of the weights.
        micro_batches_alike: Every rank must make equally many micro-batches of a step, since ranks synchronise in each.
        can_balance: Ranks may work on unequal shares of a batch, each by itself until gradients are all-reduced.
        copy: The rank whose weights this one takes up where each rank of a checkpoint wrote its own.
    """

    name: str
    synchronised = True
    forward_is_collective = False
    micro_batches_alike = False
    can_balance = False

    def __init__(self, place: RankPlace) -> None:
        self.place = place
        self.replica_group = self.copy = 0
        self.group_rank, self.group_size = place.rank, place.world_size

    @property
    def replica_groups(self) -> int:
        return 1 if self.synchronised else self.place.world_size

    def setup(self) -> None:
        """Connect the ranks."""
        return

    def close(self) -> None:
        return

    @abstractmethod
    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """`model`, alike on all ranks, as this mode trains it; `lr` is the peak learning rate."""

    def compiled_parts(self, model: nn.Module) -> list[nn.Module]:
        """Modules that torch.compile gets, each whole, before `replicate`."""
        return [model]

    def recall(self, counters: Mapping[str, Any]) -> None:
        """Take what an earlier attempt decided by measuring, before `replicate`."""
        del counters

    def counters(self) -> dict[str, Any]:
        """Decisions of this attempt, saved with the weights for `recall`."""
        return {}

    def figures(self) -> dict[str, Any]:
        """Decisions of this attempt for people to see, after `replicate`."""
        return {}

    def agree(self, flag: int) -> int:
        """The highest flag that any rank of the replica group has given, possibly one step late; alike on all ranks."""
        return flag

    def settle(self) -> int:
        """The answer to the last `agree` that is still out, for ranks that make no further step."""
        return 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Sum over the replica group's ranks, in double precision."""
        return list(values)
