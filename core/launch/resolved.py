"""`ResolvedRun`: a run's config with everything decided on this machine, and the one place that decides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.config.batch import Batch, resolve_batch
from core.config.distributed import DistributedConfig
from core.config.fields import Needs
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.errors import ConfigError
from core.launch.mode import DEEPSPEED, TORCH, ModeChoice, choose_devices, choose_mode, recipe_platform
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.recipes.check import check_by_recipe
from core.recipes.manifest import Recipe, apply_recipe, check_mode

# Ampere, as torch.cuda.is_bf16_supported has it.
_FIRST_WITH_BF16: Final = (8, 0)


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run's recipe, devices, mode and batch, decided once by `resolve`.

    Attributes:
        platform: The machine as the recipe's ranks see it.
        choice: Mode and engine, with notes for the user.
        backend: ``nccl``, ``gloo``, or empty if no tensors are exchanged.
        batch: Without meaning for a program with batches of its own.
        device_notes: For the user, on how the devices were understood.
        named: Settings that a flag or a file names, which a recipe leaves as they are.
    """

    config: RunConfig
    recipe: Recipe
    platform: Platform
    devices: tuple[Device, ...]
    choice: ModeChoice
    backend: str
    batch: Batch
    device_notes: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()

    @property
    def mode(self) -> Mode:
        return self.choice.mode

    @property
    def world_size(self) -> int:
        return len(self.devices)

    @property
    def replica_groups(self) -> int:
        """The number of groups of ranks that each train a model on chunks of their own."""
        return self.mode.replica_groups(self.world_size)

    def distributed(self, rank: int) -> DistributedConfig:
        """Return a rank's place among all of this machine."""
        world, timeout_s = self.world_size, self.config.collective_timeout_s
        return DistributedConfig(world, rank, rank, devices_per_node=world, backend=self.backend, timeout_s=timeout_s)

    @property
    def has(self) -> frozenset[Needs]:
        found = {
            Needs.DDP: self.mode.reduces_gradients(self.config.zero_stage, by_torch=self.choice.engine == TORCH),
            Needs.EXCHANGE: bool(self.backend),
            Needs.COMPILER: self.platform.name == "linux"
            and self.platform.cxx is not None
            and not self.recipe.self_contained
            and self.choice.engine != DEEPSPEED,
        }
        return frozenset(need for need, holds in found.items() if holds)

    @property
    def compiles(self) -> bool:
        return self.config.torch_compile and Needs.COMPILER in self.has

    @property
    def names_its_own_batch(self) -> bool:
        """Whether the program, or the user's DeepSpeed settings, choose the micro-batch."""
        return self.recipe.self_contained or (
            self.choice.engine == DEEPSPEED and self.config.deepspeed_config is not None
        )

    @property
    def decision(self) -> dict[str, str]:
        """The decisions of this machine by name, for a comparison by the host with the check before the run."""
        devices = ", ".join(device.uuid for device in self.devices)
        engine, backend = self.choice.engine or "none", self.backend or "none"
        batch = "its own" if self.recipe.self_contained else str(self.batch)
        return {"mode": str(self.mode), "devices": devices, "engine": engine, "backend": backend, "batch": batch}

    def note_on(self, checked: object) -> str:
        """Return a sentence on differences from an earlier `decision`; empty if there are none."""
        before = checked if isinstance(checked, dict) else {}
        changed = [
            f"{name} {now} instead of {before[name]}"
            for name, now in self.decision.items()
            if name in before and before[name] != now
        ]
        differs = "The run's host decided otherwise than the check before the start"
        return f"{differs}: {'; '.join(changed)}." if changed else ""

    def fitted(self) -> tuple[ResolvedRun, tuple[str, ...]]:
        """Return the run as its recipe fits it, and notes; blocks and raises as `check_by_recipe`."""
        config, notes = check_by_recipe(self.config, self.recipe, global_batch=self.batch.global_, named=self.named)
        return replace(self, config=config), notes

    def steps_per_epoch(self, samples: int) -> int:
        """Return the optimizer steps in one pass over the samples (of one rank, in independent mode), at least 1."""
        return max(1, -(-(samples // self.replica_groups) // self.batch.global_))


def resolve(
    config: RunConfig,
    recipe: Recipe,
    available: Sequence[Device],
    platform: Platform,
    *,
    keep_global_batch: bool = False,
    named: frozenset[str] = frozenset(),
) -> ResolvedRun:
    """Decide how a config is trained on a machine.

    Args:
        config: The request.
        recipe: Its recipe.
        available: This machine's devices.
        platform: This machine.
        keep_global_batch: For a run that resumes on other devices: the global batch stays, since the learning rate was
            chosen for it, and accumulation or the micro-batch gives way.
        named: Settings that a flag or a file names, which a recipe leaves as they are.

    Raises:
        ConfigError: Devices, mode, recipe, batch or options are not possible.
        PreflightError: This torch build cannot do it, or a package that was asked for is missing.
    """
    applied, platform = apply_recipe(config, recipe), recipe_platform(recipe, platform)
    devices, notes = choose_devices(applied.devices, applied.mode, available, platform)
    applied = _with_mode(applied, config.mode, devices)
    run = _resolved(applied, recipe, devices, platform, keep_global_batch)
    return replace(run, device_notes=notes, named=named)


def resolve_on(config: RunConfig, recipe: Recipe, devices: Sequence[Device], platform: Platform) -> ResolvedRun:
    """Decide as `resolve` for devices that are chosen already; raises the same."""
    applied = _with_mode(apply_recipe(config, recipe), config.mode, devices)
    return _resolved(applied, recipe, devices, recipe_platform(recipe, platform))


def _with_mode(applied: RunConfig, asked: Mode, devices: Sequence[Device]) -> RunConfig:
    """Drop the mode that a recipe gives to several devices if there is one: the user did not choose it."""
    return applied.replace(mode=Mode.AUTO) if asked == Mode.AUTO and len(devices) == 1 else applied


def _resolved(
    config: RunConfig,
    recipe: Recipe,
    devices: Sequence[Device],
    platform: Platform,
    keep_global_batch: bool = False,
) -> ResolvedRun:
    choice = choose_mode(config, devices, platform)
    mode, ranks = choice.mode, len(devices)
    check_mode(recipe, mode)
    if config.precision == "bf16" and not recipe.self_contained:
        _check_bf16(devices)
    batch = resolve_batch(config, mode.group_size(ranks), keep_global=keep_global_batch)
    if config.batch_size not in (None, batch.micro):
        config = config.replace(batch_size=None, grad_accum_steps=None)
    elif config.grad_accum_steps not in (None, batch.accumulation):
        config = config.replace(grad_accum_steps=None)
    backend = "" if recipe.self_contained else choice.backend
    return ResolvedRun(config, recipe, platform, tuple(devices), choice, backend, batch)


def _check_bf16(devices: Sequence[Device]) -> None:
    """Refuse a GPU without bf16 if the driver tells; the rank asks the GPU itself."""
    for device in devices:
        if device.compute_capability is not None and device.compute_capability < _FIRST_WITH_BF16:
            raise ConfigError(
                "precision",
                f"{device.name} has no bf16, which came with compute capability "
                f"{'.'.join(map(str, _FIRST_WITH_BF16))} (its own: {'.'.join(map(str, device.compute_capability))}).",
                "Choose auto, fp32 or fp16 as precision.",
            )


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """The way in which a run was trained so far, for a comparison with the `ResolvedRun` that resumes it.

    Its devices may be gone, so it cannot be resolved again: mode and number of ranks are those in the run's folder.

    Attributes:
        mode: Empty if it never started.
        batch: None if the settings give none for that number of ranks.
    """

    config: RunConfig
    mode: str
    world_size: int
    batch: Batch | None


def trained_run(config: RunConfig, recipe: Recipe, mode: str, world_size: int) -> TrainedRun:
    config = apply_recipe(config, recipe)
    try:
        batch = resolve_batch(config, Mode.read(mode).group_size(world_size))
    except ConfigError:
        batch = None
    return TrainedRun(config, mode, world_size, batch)
