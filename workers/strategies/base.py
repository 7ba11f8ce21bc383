"""Strategy: the interface of a way to share the work among ranks.

The trainer is the only caller, always from the training thread, in this order:

1. `setup` once, after the data is ready: process groups are made here;
2. `replicate` once, after the model stands on its device: the model as this mode trains it (`replica.Replica`);
3. `agree` once at every step boundary, `total` at every evaluation;
4. `close` once, at the end.

A *replica group* is a group of ranks that train one copy of the weights: they consume the same chunks in step
(`core.ledger.ledger`). `group_rank` and `group_size` are this rank's place in its own.
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
    """Which rank this is and what it runs on.

    Attributes:
        rank, world_size: Place among all ranks of the run.
        device: Where the model stands.
        backend: "gloo", "nccl", or "" for none.
        rendezvous: A `file://` URL that all ranks of this attempt share; of several machines, a `tcp://` one.
        timeout_s: How long a collective may take before its rank gives up.
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
    """One way of sharing the work; see the module's docstring for who calls what and when.

    Attributes:
        name: The mode's.
        synchronised: All ranks train in step, as one replica group.
        replica_group: Which replica group this rank belongs to.
        group_rank, group_size: This rank's place in its replica group, and how many ranks that has.
        forward_is_collective: Every forward pass needs all ranks, because each holds only a part of the weights.
        micro_batches_alike: Every rank must make equally many micro-batches of a step, since ranks meet in each.
        can_balance: Ranks may work on unequal shares of a batch, each by itself until gradients are all-reduced.
        copy: Whose weights this rank takes up where each rank of a checkpoint wrote its own.
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
        """Makes what the ranks need to talk to each other."""
        return

    def close(self) -> None:
        return

    @abstractmethod
    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """`model` as this mode trains it.

        Args:
            model: The recipe's, on its device, alike on all ranks.
            optimization: The update rule.
            lr: The peak learning rate.
            precision: The forward pass's format.
        """

    def compiled_parts(self, model: nn.Module) -> list[nn.Module]:
        """Modules that torch.compile gets, each whole, before `replicate`."""
        return [model]

    def recall(self, counters: Mapping[str, Any]) -> None:
        """What an earlier attempt decided by measuring, before `replicate`: it is decided alike again."""
        del counters

    def counters(self) -> dict[str, Any]:
        """What this attempt decided by measuring, saved with the weights for `recall`."""
        return {}

    def figures(self) -> dict[str, Any]:
        """What this attempt measured and decided, after `replicate`, for a person to see."""
        return {}

    def agree(self, flag: int) -> int:
        """The highest flag that any rank of the replica group has given, possibly one step late; alike on all ranks."""
        return flag

    def settle(self) -> int:
        """The answer to the last `agree` that is still out, for ranks that make no further step."""
        return 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the replica group's ranks, in double precision."""
        return list(values)
