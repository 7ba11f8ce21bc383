"""Batch shares, one rank's side: measures its own speed, and takes up the shares that all ranks agree on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from workers.host_link.reporter import Reporter
from workers.strategies import Strategy
from workers.training.balance.load_balance import ForwardTimes, LoadBalance, Sharing, measure_speed
from workers.training.batches import GroupBatches, MicroBatch

_UNLIKE_STEPS: Final = 2  # a process's first steps take longer than the others


class BatchShares:
    """Shares each batch out by the ranks' speeds; the trainer calls it in step on every rank of the replica group."""

    def __init__(self, strategy: Strategy, batches: GroupBatches, reporter: Reporter) -> None:
        self._strategy = strategy
        self._batches = batches
        self._reporter = reporter
        self._balance = LoadBalance(batches.global_batch, strategy.group_rank, strategy.group_size, strategy.total)
        self._times = ForwardTimes(strategy.place.device)
        self._measured_from = 0

    def begin(self, counters: Mapping[str, Any], step: int, one_pass: Callable[[], None]) -> None:
        """Restores saved shares, or measures speeds where they are for other ranks or another batch.

        `one_pass` makes a forward and backward pass of one micro-batch, without side effects and without other ranks.
        """
        self._measured_from = step + 1 + _UNLIKE_STEPS
        sharing = None
        if not self._balance.restore(counters.get("shares")):
            self._strategy.total([0.0])  # all at once, as in training: devices may share what they run on
            micro = self._batches.micro_batch
            sharing = self._balance.start(measure_speed(one_pass, micro, self._strategy.place.device))
        self._take_up(sharing, step)

    def counters(self) -> dict[str, Any]:
        return {"shares": list(self._balance.shares)}

    def timed(self, micro: MicroBatch) -> AbstractContextManager[None]:
        return self._times.forward(len(micro.indices) if micro.weight else 0)

    def boundary(self, step: int) -> None:
        """Checks now and then, after a step, whether other shares would be faster."""
        if step < self._measured_from:
            self._times.forget()
        elif self._balance.is_due(step):
            self._take_up(self._balance.again(*self._times.take()), step)

    def _take_up(self, sharing: Sharing | None, step: int) -> None:
        self._batches.shares = self._balance.shares
        if sharing is not None and self._strategy.place.rank == 0:
            self._reporter.event(
                "balance",
                step=step,
                shares=list(sharing.shares),
                samples_per_s=list(sharing.speeds),
                reason=sharing.reason,
                text=str(sharing),
            )


def make_batch_shares(wanted: str, strategy: Strategy, batches: GroupBatches, reporter: Reporter) -> BatchShares | None:
    """Return None where shares are equal, by config or because the mode cannot balance."""
    if wanted != "measured" or strategy.group_size == 1 or not strategy.can_balance:
        return None
    return BatchShares(strategy, batches, reporter)
