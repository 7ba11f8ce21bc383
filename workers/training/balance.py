"""Load balancing: the samples of each batch for each rank, in proportion to measured speed.

A step lasts max(n_r / s_r) for n_r samples on a rank that makes s_r samples a second, which is least where n_r is
proportional to s_r. Weights (`batches.MicroBatch.weight`) keep the gradient that of the whole batch. All ranks decide
by the same numbers at the same steps, so all decide alike (docs/decisions/0016).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import torch

from workers.host_link.reporter import Reporter
from workers.strategies import Strategy
from workers.training.batches import GroupBatches, MicroBatch

# Shares change only if a step is predicted to become 5 % faster (docs/decisions/0016).
WORTH: Final = 1.05
# A change that made a step 10 % longer is taken back; less may be the machine as a whole, a little slower.
_WORSE: Final = 1.1
# Decisions left out after that.
_REST: Final = 4
_FIRST_AFTER: Final = 16
_EVERY: Final = 64
_KEPT: Final = 64
_LEAST_MEASURED: Final = 8
# A process's first steps take longer than the others.
_UNLIKE_STEPS: Final = 2
_PASSES: Final = 5
_PASSES_S: Final = 1.5


def proportional(total: int, speeds: Sequence[float]) -> tuple[int, ...]:
    """`total` samples in proportion to `speeds`, at least one each if there are enough (largest remainders first)."""
    floor = 1 if total >= len(speeds) else 0
    rest = total - floor * len(speeds)
    exact = [rest * speed / sum(speeds) for speed in speeds]
    shares = [floor + int(part) for part in exact]
    by_remainder = sorted(range(len(speeds)), key=lambda rank: (int(exact[rank]) - exact[rank], rank))
    for rank in by_remainder[: total - sum(shares)]:
        shares[rank] += 1
    return tuple(shares)


def equal(total: int, ranks: int) -> tuple[int, ...]:
    """`total` samples in shares that differ by one at most."""
    return tuple(total * (rank + 1) // ranks - total * rank // ranks for rank in range(ranks))


def step_s(shares: Sequence[int], speeds: Sequence[float]) -> float:
    return max(share / speed for share, speed in zip(shares, speeds, strict=True))


@dataclass(frozen=True, slots=True)
class Sharing:
    """A decision.

    Attributes:
        shares: Samples of a whole batch for each rank.
        speeds: Samples a second of each rank, as measured.
        reason: "start" (before the first step), "steps" (by real steps), "back" (the last change did not pay).
    """

    shares: tuple[int, ...]
    speeds: tuple[float, ...]
    reason: str

    def __str__(self) -> str:
        """ "rank 0 1.9 × rank 1: 43 + 21 of 64"."""
        fast, slow = (self.speeds.index(pick(self.speeds)) for pick in (max, min))
        ratio = self.speeds[fast] / self.speeds[slow]
        parts = " + ".join(map(str, self.shares))
        back = " as before, since steps became longer" if self.reason == "back" else ""
        return f"rank {fast} {ratio:.1f} × rank {slow}: {parts} of {sum(self.shares)}{back}"


class LoadBalance:
    """The current shares; the same on every rank, since all see the same measurements.

    Args:
        global_batch: Samples in a whole batch.
        rank, ranks: This rank's place in its replica group.
        total: Sums numbers over the replica group's ranks (`strategies.base.Strategy.total`).
    """

    def __init__(
        self, global_batch: int, rank: int, ranks: int, total: Callable[[Sequence[float]], list[float]]
    ) -> None:
        self.shares = equal(global_batch, ranks)
        self._global = global_batch
        self._rank = rank
        self._ranks = ranks
        self._total = total
        self._before: tuple[tuple[int, ...], float] | None = None
        self._rest = 0

    def restore(self, shares: object) -> bool:
        """Take up saved shares; False when they are for other ranks or another batch."""
        if not isinstance(shares, list) or len(shares) != self._ranks or sum(shares) != self._global:
            return False
        self.shares = tuple(int(share) for share in shares)
        return True

    def start(self, own_speed: float) -> Sharing:
        """The first decision, from passes before the first step."""
        return self._decide(self._gathered(own_speed), "start")

    def is_due(self, step: int) -> bool:
        return step in (_FIRST_AFTER, 2 * _FIRST_AFTER) or step % _EVERY == 0

    def again(self, own_speed: float, passes: int) -> Sharing | None:
        """Decide again from real steps; None where the shares stay. All ranks of the replica group call it together.

        Args:
            own_speed: Samples a second of this rank since the last decision.
            passes: Forward passes that were timed.
        """
        speed = own_speed if passes >= _LEAST_MEASURED else 0.0
        speeds = self._gathered(speed)  # always, as the others wait for ours
        before = self.shares
        if min(speeds) <= 0:
            return None
        if self._rest:
            self._rest -= 1
            return None
        now_s = step_s(self.shares, speeds)
        if self._before is not None and now_s > _WORSE * self._before[1]:
            # Time is not in proportion to samples here (a small batch may take as long as a larger one).
            (self.shares, _), self._before, self._rest = self._before, None, _REST
            return Sharing(self.shares, speeds, "back")
        decision = self._decide(speeds, "steps")
        self._before = (before, now_s) if decision.shares != before else None
        return decision if decision.shares != before else None

    def _decide(self, speeds: tuple[float, ...], reason: str) -> Sharing:
        wanted = proportional(self._global, speeds)
        if step_s(self.shares, speeds) > WORTH * step_s(wanted, speeds):
            self.shares = wanted
        return Sharing(self.shares, speeds, reason)

    def _gathered(self, own: float) -> tuple[float, ...]:
        return tuple(self._total([own if rank == self._rank else 0.0 for rank in range(self._ranks)]))


class ForwardTimes:
    """Times this rank's forward passes, on a GPU by its own clock, which is read when `take` is called.

    Forward passes alone: in a backward pass a fast rank waits for the gradients of a slow one.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._taken: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        self._events: deque[tuple[torch.cuda.Event, torch.cuda.Event, int]] = deque(maxlen=_KEPT)

    def forward(self, samples: int) -> AbstractContextManager[None]:
        """The context of one forward pass; an empty one is not timed."""
        if not samples:
            return nullcontext()
        return self._by_events(samples) if self._on_gpu else self._by_clock(samples)

    def take(self) -> tuple[float, int]:
        """Samples a second since the last call (the median), and the number of passes."""
        for began, ended, samples in self._events:
            ended.synchronize()
            self._taken.append((began.elapsed_time(ended) / 1e3, samples))
        speeds = [samples / seconds for seconds, samples in self._taken if seconds > 0]
        self.forget()
        return (median(speeds), len(speeds)) if speeds else (0.0, 0)

    def forget(self) -> None:
        self._taken.clear()
        self._events.clear()

    @contextmanager
    def _by_clock(self, samples: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._taken.append((time.perf_counter() - began, samples))

    @contextmanager
    def _by_events(self, samples: int) -> Iterator[None]:
        make: Callable[..., torch.cuda.Event] = torch.cuda.Event
        began, ended = make(enable_timing=True), make(enable_timing=True)
        began.record()
        yield
        ended.record()
        self._events.append((began, ended, samples))


def measure_speed(one_pass: Callable[[], None], samples: int, device: torch.device) -> float:
    """Samples a second of a few passes over `samples` each: the median, after one to warm up."""

    def seconds() -> float:
        began = time.perf_counter()
        one_pass()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    seconds()
    times: list[float] = []
    while len(times) < 2 or (len(times) < _PASSES and sum(times) < _PASSES_S):
        times.append(seconds())
    return samples / median(times)


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
        """Restore saved shares, or measure speeds where they are for other ranks or another batch.

        `one_pass` makes a forward and backward pass of one micro-batch, without side effects and without other ranks.
        """
        self._measured_from = step + 1 + _UNLIKE_STEPS
        sharing = None
        if not self._balance.restore(counters.get("shares")):
            # All at once, as in training: devices may share what they run on.
            self._strategy.total([0.0])
            micro = self._batches.micro_batch
            sharing = self._balance.start(measure_speed(one_pass, micro, self._strategy.place.device))
        self._take_up(sharing, step)

    def counters(self) -> dict[str, Any]:
        return {"shares": list(self._balance.shares)}

    def timed(self, micro: MicroBatch) -> AbstractContextManager[None]:
        return self._times.forward(len(micro.indices) if micro.weight else 0)

    def boundary(self, step: int) -> None:
        """Check now and then, after a step, whether other shares would be faster."""
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
