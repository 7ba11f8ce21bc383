"""Contenders of a benchmark: the same run on 1, 2, 4, 8 of its devices, or with other micro-batches. Pure.

Each device gets the processor threads that it has when all devices train. With all threads for one device and half of
them for each of two, two CPU devices could never be twice as fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.errors import ConfigError, UsageError
from core.launch.environment import cpu_threads
from core.launch.resolved import ResolvedRun, resolve_on

COUNTS: Final = (1, 2, 4, 8)
# Of micro-batches.
MOST_SIZES: Final = 6


class Kind(StrEnum):
    """What is measured."""

    WEAK = "weak"
    STRONG = "strong"
    COMM = "comm"
    MEMORY = "memory"
    ACCUMULATION = "accumulation"


TITLES: Final = {
    Kind.WEAK: "Weak scaling",
    Kind.STRONG: "Strong scaling",
    Kind.COMM: "Communication",
    Kind.MEMORY: "Memory",
    Kind.ACCUMULATION: "Gradient accumulation",
}
ABOUT: Final = {
    Kind.WEAK: "Samples a second with the same batch on each device: 100 % is the speed of one device, times devices.",
    Kind.STRONG: "Samples a second with the same global batch: 100 % is the speed of one device, times devices.",
    Kind.COMM: "Time and bandwidth of gradient all-reduces, by size and transport.",
    Kind.MEMORY: "Peak memory of each device, and whether it grows from step to step.",
    Kind.ACCUMULATION: "Time of a step with the same global batch in micro-batches of different size.",
}
# Efficiency that is good.
TARGETS: Final = {Kind.WEAK: 0.9, Kind.STRONG: 0.8}
TURNS: Final = {Kind.WEAK: 5, Kind.STRONG: 5, Kind.COMM: 3, Kind.MEMORY: 1, Kind.ACCUMULATION: 5}
# How long steps or sums are timed in a turn.
SECONDS: Final = {Kind.WEAK: 2.0, Kind.STRONG: 2.0, Kind.COMM: 5.0, Kind.MEMORY: 30.0, Kind.ACCUMULATION: 2.0}


@dataclass(frozen=True, slots=True)
class Contender:
    """What takes turns with others.

    Attributes:
        run: What is measured, on its devices.
    """

    run: ResolvedRun

    @property
    def devices(self) -> int:
        return self.run.world_size

    @property
    def name(self) -> str:
        """As a progress line calls it."""
        batch, devices = self.run.batch, f"{self.devices} device{'' if self.devices == 1 else 's'}"
        return f"{devices}, micro-batch {batch.micro} × {batch.accumulation}"


def parse_counts(text: str) -> tuple[int, ...]:
    """Numbers of devices from "1,2,4".

    Raises:
        UsageError: It is not a list of numbers from 1 on.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise UsageError(f"--counts is {text!r}.", "Give numbers of devices, for example --counts 1,2,4.")
    return tuple(sorted({int(part) for part in parts}))


def default_counts(devices: int) -> tuple[int, ...]:
    """1, 2, 4, 8 as far as there are devices, and all of them."""
    return tuple(sorted({*(count for count in COUNTS if count <= devices), devices}))


def threads_of_device(run: ResolvedRun, counts: Sequence[int]) -> int:
    """Processor threads that each rank of every contender has."""
    return cpu_threads(run.platform, max(counts))


def find_contenders(kind: Kind, run: ResolvedRun, counts: Sequence[int] = ()) -> tuple[Contender, ...]:
    """What is measured.

    Args:
        kind: The benchmark.
        run: On the most devices.
        counts: Numbers of devices; empty: `default_counts`.

    Raises:
        ConfigError, PreflightError: This run cannot be measured so.
    """
    _check(kind, run)
    counts = sorted(counts or default_counts(run.world_size))
    if counts[-1] > run.world_size:
        raise ConfigError(
            "devices",
            f"{counts[-1]} devices are to be measured, and the run has {run.world_size}.",
            "Choose more devices, or smaller counts.",
            title="Not enough devices",
            option=f"--devices cpux{counts[-1]}, or --counts {','.join(map(str, default_counts(run.world_size)))}",
        )
    if kind == Kind.COMM:
        counts = [count for count in counts if count > 1]
    if len(counts) < (2 if kind in (Kind.WEAK, Kind.STRONG) else 1):
        several = "at least two devices" if kind == Kind.COMM else "two or more numbers of devices, such as 1 and 2"
        raise ConfigError(
            "devices",
            f"{TITLES[kind]} needs {several}.",
            "Choose at least two devices.",
            title="Not enough devices",
            option="--devices cpux2",
        )
    made = [contender for count in counts for contender in _contenders_on(kind, run, count, max(counts))]
    return tuple(made)


def _check(kind: Kind, run: ResolvedRun) -> None:
    title = "This run cannot be measured"
    if run.recipe.self_contained:
        raise ConfigError(
            "recipe",
            "Your script chooses its own batches and steps, so Rankdeck cannot time them by themselves.",
            "Choose a recipe.",
            title=title,
        )
    if kind == Kind.STRONG and run.mode.is_apart:
        raise ConfigError(
            "mode",
            "Independent devices have no common global batch, which strong scaling shares out among devices.",
            "Choose weak scaling, or another mode.",
            title=title,
            option="rankdeck bench weak, or --mode ddp",
        )


def _contenders_on(kind: Kind, run: ResolvedRun, count: int, most: int) -> list[Contender]:
    config = run.config.replace(mode=run.mode)
    if count == 1:
        config = config.replace(mode=Mode.AUTO, sync_every=None)
    if kind == Kind.COMM:
        config = config.replace(mode=Mode.DDP, sync_every=None, gradient_exchange="auto")
    micro, accumulation = run.batch.micro, run.batch.accumulation
    share = micro * accumulation
    if kind in (Kind.STRONG, Kind.ACCUMULATION) and not run.mode.is_apart:
        share = _share(run.batch.global_, count)
        micro = next(size for size in range(min(micro, share), 0, -1) if share % size == 0)
    if kind == Kind.ACCUMULATION:
        return [_contender(run, config, size, share // size, count, most) for size in _sizes(share, run.batch.micro)]
    found = [_contender(run, config, micro, share // micro, count, most)]
    if kind == Kind.COMM and found[0].run.backend == "nccl":
        found.append(_contender(run, config.replace(backend="gloo"), micro, share // micro, count, most))
    return found


def _share(global_batch: int, count: int) -> int:
    if global_batch % count:
        raise ConfigError(
            "global_batch_size",
            f"A global batch of {global_batch} cannot be shared out evenly among {count} devices.",
            f"Set the global batch to a multiple of {count}, such as {-(-global_batch // count) * count}.",
        )
    return global_batch // count


def _sizes(share: int, micro: int) -> list[int]:
    """Micro-batches that divide a device's share: powers of two nearest to the run's own, and that one."""
    sizes = {1 << power for power in range(share.bit_length()) if share % (1 << power) == 0}
    sizes |= {size for size in (micro, share) if share % size == 0}
    if len(sizes) < 2:
        raise ConfigError(
            "global_batch_size",
            f"A device's share of the global batch is {share}, so there is only one size of micro-batch.",
            "Choose a larger global batch.",
            option="--global-batch-size 32",
        )
    return sorted(sorted(sizes, key=lambda size: (abs(math.log2(size / micro)), size))[:MOST_SIZES])


def _contender(run: ResolvedRun, config: RunConfig, micro: int, accumulation: int, count: int, most: int) -> Contender:
    config = config.replace(batch_size=micro, grad_accum_steps=accumulation, global_batch_size=None)
    platform = replace(run.platform, physical_cores=cpu_threads(run.platform, most) * count)
    return Contender(resolve_on(config, run.recipe, run.devices[:count], platform))
