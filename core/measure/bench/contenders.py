"""Contenders of a benchmark: the same run on 1, 2, 4, 8 of its devices. Pure.

Each device gets the processor threads that it has when all devices train. With all threads for one device and half of
them for each of two, two CPU devices could never be twice as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from core.config.mode import Mode
from core.errors import ConfigError, UsageError
from core.launch.environment import cpu_threads
from core.launch.resolved import ResolvedRun, resolve_on

COUNTS: Final = (1, 2, 4, 8)


class Kind(StrEnum):
    """A benchmark."""

    WEAK = "weak"
    STRONG = "strong"
    COMM = "comm"


_TITLES: Final = {Kind.WEAK: "Weak scaling", Kind.STRONG: "Strong scaling", Kind.COMM: "Communication"}
# Efficiency that is good.
TARGETS: Final = {Kind.WEAK: 0.9, Kind.STRONG: 0.8}
TURNS: Final = {Kind.WEAK: 5, Kind.STRONG: 5, Kind.COMM: 3}
# How long steps or sums are timed in a turn.
SECONDS: Final = {Kind.WEAK: 2.0, Kind.STRONG: 2.0, Kind.COMM: 5.0}


def parse_counts(text: str) -> tuple[int, ...]:
    """Read numbers of devices from "1,2,4".

    Raises:
        UsageError: It is not a list of numbers from 1 on.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise UsageError(f"--counts is {text!r}.", "Give numbers of devices, for example --counts 1,2,4.")
    return tuple(sorted({int(part) for part in parts}))


def default_counts(devices: int) -> tuple[int, ...]:
    """Return 1, 2, 4, 8 as far as there are devices, and all of them."""
    return tuple(sorted({*(count for count in COUNTS if count <= devices), devices}))


def find_contenders(kind: Kind, run: ResolvedRun, counts: Sequence[int] = ()) -> tuple[ResolvedRun, ...]:
    """Return the runs to compare; `run` has the most devices, and without `counts` the default ones are taken.

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
    if len(counts) < (1 if kind == Kind.COMM else 2):
        several = "at least two devices" if kind == Kind.COMM else "two or more numbers of devices, such as 1 and 2"
        raise ConfigError(
            "devices",
            f"{_TITLES[kind]} needs {several}.",
            "Choose at least two devices.",
            title="Not enough devices",
            option="--devices cpux2",
        )
    return tuple(_on_devices(kind, run, count, max(counts)) for count in counts)


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


def _on_devices(kind: Kind, run: ResolvedRun, count: int, most: int) -> ResolvedRun:
    config = run.config.replace(mode=run.mode)
    if count == 1:
        config = config.replace(mode=Mode.AUTO, sync_every=None)
    if kind == Kind.COMM:
        config = config.replace(mode=Mode.DDP, sync_every=None, gradient_exchange="auto")
    micro, accumulation = run.batch.micro, run.batch.accumulation
    if kind == Kind.STRONG:
        share = _share(run.batch.global_, count)
        micro = next(size for size in range(min(micro, share), 0, -1) if share % size == 0)
        accumulation = share // micro
    config = config.replace(batch_size=micro, grad_accum_steps=accumulation, global_batch_size=None)
    platform = replace(run.platform, physical_cores=cpu_threads(run.platform, most) * count)
    return resolve_on(config, run.recipe, run.devices[:count], platform)


def _share(global_batch: int, count: int) -> int:
    if global_batch % count:
        raise ConfigError(
            "global_batch_size",
            f"A global batch of {global_batch} cannot be shared out evenly among {count} devices.",
            f"Set the global batch to a multiple of {count}, such as {-(-global_batch // count) * count}.",
        )
    return global_batch // count
