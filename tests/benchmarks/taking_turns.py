"""Rates of programs that take turns: all are started, and at any moment one runs and the others are suspended.

What else a machine does comes in phases that last from a second to minutes. Programs measured one after another fall
into different ones, and differ by a fifth without being different. Here each has a slice of two seconds, over and over,
so that a phase falls on all alike, and a ratio is taken between slices that lie beside each other.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import psutil

SLICE_S: Final = 2.0
# Steps of every rank before a program's first slice.
WARM_STEPS: Final = 8
_POLL_S: Final = 0.1
_START_LIMIT_S: Final = 180.0
_DRAWS: Final = 1000

# By rank, when its steps ended; seconds since the epoch.
Ends: TypeAlias = dict[int, list[float]]


@dataclass
class Contender:
    """A program that trains until it is killed.

    Attributes:
        name: As the table calls it.
        processes: What was started, without the children of these.
        ends: Reads which steps have ended until now.
        world: How many ranks it has.
        in_step: Whether the slowest rank decides, because all wait for it; else every rank counts by itself.
        slices: When it ran: began, ended, as `ends` tells time.
    """

    name: str
    processes: Sequence[psutil.Popen]
    ends: Callable[[], Ends]
    world: int
    in_step: bool
    slices: list[tuple[float, float]] = field(default_factory=list)

    def tree(self) -> Iterator[psutil.Process]:
        for process in self.processes:
            yield process
            with contextlib.suppress(psutil.NoSuchProcess):
                yield from process.children(recursive=True)

    def suspend(self) -> None:
        """Stops it where it is."""
        for process in self.tree():
            process.suspend()

    def resume(self) -> None:
        for process in self.tree():
            process.resume()

    def kill(self) -> None:
        tree = list(self.tree())
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(tree, timeout=10.0)

    def warm_up(self) -> None:
        """Lets it start and make its first steps.

        Raises:
            AssertionError: If it ends, or takes too long.
        """
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            made = [len(ends) for ends in self.ends().values()]
            if len(made) == self.world and min(made) >= WARM_STEPS:
                return
            assert all(process.poll() is None for process in self.processes), f"{self.name} ended"
            assert time.monotonic() < deadline, f"{self.name} did not start"
            time.sleep(_POLL_S)

    def steps_timed(self) -> list[Timed]:
        """Of every slice: steps and seconds between the first and the last that ended in it."""
        found = []
        of_ranks = list(self.ends().values())
        for began, ended in self.slices:
            within = [[end for end in ends if began <= end <= ended] for ends in of_ranks]
            steps = [max(0, len(ends) - 1) for ends in within]
            spans = [ends[-1] - ends[0] if ends else 0.0 for ends in within]
            if self.in_step:  # all ranks make the same steps; the mean of what they say of the time
                found.append(Timed(min(steps) * len(steps), sum(spans) / len(spans)))
            else:
                found.append(Timed(sum(steps), sum(spans) / len(spans)))
        return found


@dataclass(frozen=True)
class Timed:
    """Steps of all ranks together, and the seconds they took."""

    steps: int
    seconds: float


def rate(timed: Sequence[Timed]) -> float:
    """Steps a second over slices; 0 without a step."""
    seconds = sum(one.seconds for one in timed)
    return sum(one.steps for one in timed) / seconds if seconds else 0.0


def ratio(of: Sequence[Timed], to: Sequence[Timed]) -> tuple[float, float, float]:
    """The ratio of two rates, and where it lies nine times in ten.

    The range is a bootstrap's over turns: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    pick = random.Random(0)
    turns = range(len(of))
    drawn = []
    for _ in range(_DRAWS):
        picked = pick.choices(turns, k=len(turns))
        beside = rate([to[turn] for turn in picked])
        drawn.append(rate([of[turn] for turn in picked]) / beside if beside else 0.0)
    drawn.sort()
    return rate(of) / rate(to), drawn[_DRAWS // 20], drawn[-_DRAWS // 20]


def median_ratio(of: Sequence[Timed], to: Sequence[Timed]) -> float:
    """The median over turns of the ratio within a turn: what a few turns that something else fell into do not move."""
    rates = [(rate([one]), rate([other])) for one, other in zip(of, to, strict=True)]
    return statistics.median(one / other for one, other in rates if other)


def take_turns(starts: Sequence[Callable[[], Contender]], turns: int) -> dict[str, list[Timed]]:
    """Starts all programs, one after another, and gives each a slice, `turns` times.

    Args:
        starts: Start one program each.
        turns: Slices of each; every second time in the other order.

    Returns:
        By name, what each did in each of its slices.
    """
    contenders: list[Contender] = []
    try:
        for start in starts:
            contenders.append(start())
            contenders[-1].warm_up()
            contenders[-1].suspend()
        for turn in range(turns):
            for contender in contenders if turn % 2 == 0 else reversed(contenders):
                contender.resume()
                began = time.time()
                time.sleep(SLICE_S)
                ended = time.time()
                contender.suspend()
                contender.slices.append((began, ended))
        return {contender.name: contender.steps_timed() for contender in contenders}
    finally:
        for contender in contenders:
            contender.kill()
