"""`ResolvedRun`: a run's config with everything decided on this machine, and the one function that decides it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from core.config.batch import Batch, resolve_batch
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.errors import ConfigError
from core.launch.mode import ModeChoice, backend_of, choose_devices, choose_mode, platform_of
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.recipes.manifest import Recipe, apply_recipe

DEFAULT_MICRO_BATCH: Final = 8
"""Samples a rank works on at once where neither person nor recipe says; `workers.training.session` has it too."""

FitBatch = Callable[[RunConfig, int, Mode], RunConfig]


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """What will be trained, on what and how. Made by `resolve`; whoever needs a part of it takes it from here.

    Attributes:
        config: Complete with the recipe's defaults.
        recipe: What is trained.
        platform: The machine as the recipe's ranks see it.
        devices: One rank each, in rank order.
        choice: Mode, engine and what a person should know about them.
        backend: ``nccl``, ``gloo``, or empty where no tensors are exchanged.
        batch: The batch arithmetic; it means nothing to a program with batches of its own.
        device_notes: What a person should know about how the devices were understood.
    """

    config: RunConfig
    recipe: Recipe
    platform: Platform
    devices: tuple[Device, ...]
    choice: ModeChoice
    backend: str
    batch: Batch
    device_notes: tuple[str, ...] = ()

    @property
    def mode(self) -> Mode:
        """The mode it trains in, never `Mode.AUTO`."""
        return self.choice.mode

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.devices)

    @property
    def replica_groups(self) -> int:
        """Groups of ranks that each train a model on chunks of their own."""
        return self.mode.replica_groups(self.world_size)

    def steps_per_epoch(self, samples: int) -> int:
        """Optimizer steps in one pass over so many samples (of one rank, in independent mode), at least 1."""
        return max(1, -(-(samples // self.replica_groups) // self.batch.global_))


def resolve(
    config: RunConfig,
    recipe: Recipe,
    available: Sequence[Device],
    platform: Platform,
    *,
    fit_batch: FitBatch = lambda config, _ranks, _mode: config,
) -> ResolvedRun:
    """Decides how a config is trained on a machine.

    Args:
        config: What is asked.
        recipe: Its recipe.
        available: This machine's devices.
        platform: This machine.
        fit_batch: Makes batch numbers go together on so many ranks, for a run that resumes on others.

    Raises:
        ConfigError: Devices, mode, recipe, batch or options cannot be as asked.
        PreflightError: This torch build cannot do it, or a package that was asked for is missing.
    """
    config, platform = apply_recipe(config, recipe), platform_of(recipe, platform)
    devices, notes = choose_devices(config, available, platform)
    return _resolved(config, recipe, devices, platform, notes, fit_batch)


def resolve_on(config: RunConfig, recipe: Recipe, devices: Sequence[Device], platform: Platform) -> ResolvedRun:
    """As `resolve`, on devices that are chosen already: those ticked in the window, or those a fallback keeps.

    Raises:
        ConfigError, PreflightError: As `resolve`.
    """
    return _resolved(apply_recipe(config, recipe), recipe, devices, platform_of(recipe, platform))


def _resolved(
    config: RunConfig,
    recipe: Recipe,
    devices: Sequence[Device],
    platform: Platform,
    notes: tuple[str, ...] = (),
    fit_batch: FitBatch = lambda config, _ranks, _mode: config,
) -> ResolvedRun:
    choice = choose_mode(config, devices, platform)
    mode, ranks = choice.mode, len(devices)
    if mode not in recipe.modes:
        raise ConfigError(
            "mode",
            f"{recipe.title} does not support mode {mode.value!r}.",
            f"Choose one of: auto, {', '.join(recipe.modes)}.",
        )
    config = fit_batch(config, ranks, mode)
    batch = resolve_batch(config, mode.group_size(ranks), DEFAULT_MICRO_BATCH)
    backend = "" if recipe.self_contained else backend_of(config, mode, devices, platform)
    return ResolvedRun(config, recipe, platform, tuple(devices), choice, backend, batch, notes)
