"""Local SGD: parallel-independent ranks whose weights are synchronised every H steps (`outer_optimizer`).

The order of events around a round, which keeps stop, commit and resume exact, is in
`workers.training.independent.local_sgd`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from core.config.sync import Synchronisation
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.saved_state import SavedState
from workers.state_files.slices import StatePart
from workers.strategies.base import RankPlace
from workers.strategies.outer_optimizer import OuterOptimizer
from workers.strategies.process_group import make_process_group
from workers.strategies.replica import Replica, Trained
from workers.strategies.single import IndependentStrategy

OUTER_FILE: Final = "outer.safetensors"
# How long the fastest rank waits for the slowest. A rank that dies is noticed at once, by its closed connection.
ROUND_LIMIT_S: Final = 7 * 86_400.0
_LOOK_UP: Final = datetime.timedelta(seconds=0.05)


class LocalSgdStrategy(IndependentStrategy):
    """Each rank a replica group of its own, and rounds."""

    def __init__(self, place: RankPlace, rule: Synchronisation) -> None:
        super().__init__(place)
        self.rule = rule
        self._ballots: dist.ProcessGroup | None = None
        self._open: tuple[Tensor, dist.Work] | None = None

    def setup(self) -> None:
        self._ballots = make_process_group(self.place, flags_timeout_s=ROUND_LIMIT_S)

    def close(self) -> None:
        """Leave the process groups; with a ballot still out that would wait for it, so then the process just ends."""
        if dist.is_initialized() and (self._open is None or self._open[1].is_completed()):
            dist.destroy_process_group()

    def replicate(
        self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision
    ) -> LocalSgdReplica:
        """A whole copy a rank, written under the rank's name, and the shared weights, which rank 0 writes."""
        trained = Trained(model, optimization.optimizer(model, lr), optimization, precision)
        wire = self.place.device if self.place.backend == "nccl" else torch.device("cpu")
        outer = OuterOptimizer(model, self.rule, dist.all_reduce, wire)
        return LocalSgdReplica(self.place, outer, trained)

    def cast(self, row: Sequence[int]) -> None:
        """Put this rank's row into the next ballot without waiting for it; `count` gives what came of it."""
        table = torch.zeros(self.place.world_size, len(row), dtype=torch.int64)
        table[self.place.rank] = torch.tensor(list(row), dtype=torch.int64)
        work = dist.all_reduce(table, group=self._ballots, async_op=True)
        self._open = (table, work)

    def count(self, meanwhile: Callable[[], None]) -> list[list[int]]:
        """Every rank's row, once all have cast theirs.

        Args:
            meanwhile: Called now and then while others are still training.

        Raises:
            RuntimeError: Another rank is gone.
        """
        assert self._open is not None
        table, work = self._open
        while not _completed(work):
            meanwhile()
        self._open = None
        rows: list[list[int]] = table.tolist()
        return rows


class LocalSgdReplica(Replica):
    """A whole model that goes its own way between rounds; `outer` is what the ranks share."""

    def __init__(self, place: RankPlace, outer: OuterOptimizer, trained: Trained) -> None:
        super().__init__(trained, f"_rank{place.rank}")
        self.outer = outer
        self._writes_outer = place.rank == 0

    def parts(self) -> list[StatePart]:
        """The rank's own copy, and from rank 0 the weights at the last round, where they are needed again."""
        shared = self.outer.tensors() if self._writes_outer else {}
        return [*super().parts(), *([StatePart(OUTER_FILE, shared, {})] if shared else [])]

    def load(self, saved: SavedState) -> None:
        """As `Replica.load`, and the shared weights; a checkpoint of another mode has none."""
        super().load(saved)
        self.outer.load(saved.read(OUTER_FILE)[0] if saved.has(OUTER_FILE) else {})


def _completed(work: dist.Work) -> bool:
    """Whether a collective is done, after waiting for it a moment.

    Raises:
        RuntimeError: It failed.
    """
    try:
        work.wait(_LOOK_UP)
    except RuntimeError:
        if not work.is_completed():
            return False  # only the moment is over
        # It was done just after the moment was over, or it failed, which this says again.
        work.wait()
    return True
