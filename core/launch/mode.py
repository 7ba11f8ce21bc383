"""Mode choice: the devices and the mode that a config means on a machine, and the engine that shards. Pure.

Nothing here asks the machine anything, so every platform's answer can be tested on any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.config import RunConfig
from core.config.mode import Mode
from core.config.run_config import EXCHANGES
from core.config.sync import resolve_synchronisation
from core.errors import ConfigError, PreflightError, sentences
from core.launch.commit_charge import capped_devices
from core.machine.cuda_torch import GOOD_TORCH
from core.machine.devices.device import Device
from core.machine.devices.names import device_label
from core.machine.devices.resolve import check_clear, resolve_devices
from core.machine.packages import MissingPackageError
from core.machine.platform import Platform
from core.machine.torch_builds import PYTORCH_INDEX, ROCM_TAG
from core.recipes.manifest import Recipe

# What to do about a CPU build; torch 2.13 is built for CUDA 12.6 and 13.0, and 13 needs driver 580.
CUDA_TORCH: Final = (
    f"Install a CUDA build: pip install --force-reinstall torch=={GOOD_TORCH} --index-url "
    "https://download.pytorch.org/whl/cu130 (cu126 where the driver is older than 580)"
)
ROCM_TORCH: Final = (
    f"Install a ROCm build (for Linux): pip install --force-reinstall torch=={GOOD_TORCH} --index-url "
    f"{PYTORCH_INDEX}/{ROCM_TAG}"
)
DEEPSPEED: Final = "deepspeed"
TORCH: Final = "torch"

# Begins the note on the mode of a config that names none; a form that shows the mode leaves it out.
NO_MODE: Final = "No mode was chosen: "

_WITHOUT_GLOO_ON_WINDOWS: Final = ((2, 8), (2, 9), (2, 10))


def choose_devices(
    asked: tuple[str, ...], mode: Mode, available: Sequence[Device], platform: Platform
) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """Return the devices of a config on this machine, and notes on how they were understood.

    Args:
        asked: `RunConfig.devices`.
        mode: `RunConfig.mode`.
        available: This machine's devices.
        platform: The machine as the recipe's ranks see it (`recipe_platform`).

    Raises:
        ConfigError: As `core.machine.devices.resolve_devices`.
        PreflightError: A GPU was named, and this torch is a CPU build.
    """
    if asked != ("auto",):
        devices = tuple(resolve_devices(asked, available))
        check_makers(devices)
        check_cuda(devices, platform)
        return devices, ()
    usable, notes = usable_devices(available, platform)
    devices, capped = capped_devices(tuple(resolve_devices(asked, usable)), platform.commit_free)
    check_makers(devices)
    notes = (*notes, *capped)
    if mode != Mode.SINGLE or len(devices) < 2:
        return devices, notes
    others = "the other one stays" if len(devices) == 2 else f"the other {len(devices) - 1} stay"
    first = devices[0]
    taken = f"Mode single trains on one device: {device_label(first)} is taken, {others} free."
    return (first,), (*notes, taken)


def usable_devices(available: Sequence[Device], platform: Platform) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """Return the devices that this torch can train on, and the reason why others are left out.

    Raises:
        ConfigError: `CUDA_VISIBLE_DEVICES` is ambiguous.
    """
    check_clear(available)
    visible = tuple(device for device in available if not device.hidden_by)
    why = why_no_cuda(available, platform)
    if why is None and len(visible) < len(available) and all(device.kind == "cpu" for device in visible):
        hidden_by = next(device.hidden_by for device in available if device.hidden_by)
        return visible, (f"The run trains on the CPU: {hidden_by} hides every GPU of this machine.",)
    if why is None:
        return tuple(device for device in visible if can_train_on(device, platform)), ()
    return tuple(device for device in available if device.kind != "cuda"), (f"The run trains on the CPU. {why}",)


def why_no_cuda(devices: Sequence[Device], platform: Platform) -> str | None:
    """Return why this torch can train on none of these GPUs, and the remedy; None if it can."""
    try:
        check_cuda(devices, platform)
    except PreflightError as error:
        return sentences(error.cause, error.next_step)
    return None


def can_train_on(device: Device, platform: Platform) -> bool:
    """Return whether this torch is built for a device; True if there is no torch to judge by."""
    if device.kind == "cpu" or platform.torch_version is None:
        return True
    return (platform.rocm_build if device.is_amd else platform.cuda_build) is not None


def check_cuda(devices: Sequence[Device], platform: Platform) -> None:
    """Refuse GPUs that torch is not built for; raises `PreflightError` with the torch to install."""
    gpus = [device for device in devices if device.kind == "cuda" and not device.hidden_by]
    if not gpus or any(can_train_on(gpu, platform) for gpu in gpus):
        return
    error = PreflightError(
        f"torch {platform.torch_version} is built for {platform.build} and cannot train on {gpus[0].name}.",
        f"{ROCM_TORCH if gpus[0].is_amd else CUDA_TORCH}.",
        title="This PyTorch cannot use a GPU",
    )
    error.window_step = f"Install its {'ROCm' if gpus[0].is_amd else 'CUDA'} build, or select CPU devices."
    raise error


def check_makers(devices: Sequence[Device]) -> None:
    """Refuse a run on NVIDIA's and AMD's GPUs together; raises `ConfigError`."""
    nvidia = next((device for device in devices if device.kind == "cuda" and not device.is_amd), None)
    amd = next((device for device in devices if device.is_amd), None)
    if nvidia is None or amd is None:
        return
    raise ConfigError(
        "devices",
        f"{nvidia.name} needs a CUDA build of PyTorch and {amd.name} a ROCm build, and a run has one PyTorch.",
        "Choose GPUs of one maker, and start a second run for the others, with an environment of its own.",
        title="GPUs of two makers",
    )


def recipe_platform(recipe: Recipe, platform: Platform) -> Platform:
    """Return the machine as a recipe's ranks see it: a self-contained program has a torch of its own."""
    if not recipe.self_contained:
        return platform
    return replace(platform, torch_version=None, cuda_build=None, rocm_build=None, deepspeed_version=None)


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The way in which a config is trained.

    Attributes:
        mode: Never `Mode.AUTO`.
        engine: ``deepspeed`` or ``torch`` in the modes zero and fsdp; empty in others.
        notes: For the user, on how the request was understood.
        backend: ``nccl``, ``gloo``, or empty if the ranks exchange no tensors.
        engine_note: In mode zero, which engine shards and why.
    """

    mode: Mode
    engine: str
    notes: tuple[str, ...]
    backend: str = ""
    engine_note: str = ""


def choose_mode(config: RunConfig, devices: Sequence[Device], platform: Platform) -> ModeChoice:
    """Choose the mode for these devices.

    Raises:
        ConfigError: There is no device, they cannot train in this mode, or settings contradict each other.
        PreflightError: This torch build cannot do it, or a package that was asked for is missing.
    """
    mode, notes = _mode(config, devices, platform)
    engine, engine_notes = _engine(config, mode, platform)
    by_ddp = mode.reduces_gradients(config.zero_stage, by_torch=engine == TORCH)
    if by_ddp and config.gradient_exchange not in EXCHANGES:  # a run of an earlier version
        gone = f"Gradients are sent whole: {config.gradient_exchange} is no longer offered, so the run takes auto."
        notes = (*notes, gone)
    connected = mode.is_connected or (mode.is_apart and config.sync_every is not None)
    backend = _backend(config.backend, devices, platform) if connected else ""
    note = ""
    if mode.traits.by_deepspeed:
        chosen = config.zero_engine == engine
        note = _engine_note(config.zero_stage, engine, platform.deepspeed_version, chosen=chosen)
    return ModeChoice(mode, engine, (*notes, *engine_notes), backend, note)


def _backend(asked: str, devices: Sequence[Device], platform: Platform) -> str:
    problem = why_no_nccl(devices, platform)
    if asked == "nccl" and problem:
        raise ConfigError("backend", f"NCCL cannot be used: {problem}.", "Choose the backend auto or gloo.")
    return "gloo" if problem or asked == "gloo" else "nccl"


def why_no_nccl(devices: Sequence[Device], platform: Platform) -> str:
    """Return why NCCL cannot connect these devices; empty if it can."""
    if not all(device.kind == "cuda" for device in devices):
        return "it connects only GPUs, but CPU devices were chosen"
    if platform.name != "linux":
        return "PyTorch has it under Linux only"
    if not platform.has_nccl:
        return "this PyTorch was built without CUDA and ROCm"
    return ""


def not_as_asked(asked: Mode, mode: Mode, *, synchronises: bool) -> tuple[str, ...]:
    """Return notes on settings of the mode that mean something else in `mode`, the chosen one."""
    notes = []
    if mode == Mode.SINGLE and asked not in (Mode.AUTO, Mode.SINGLE):
        notes.append(f"With one device, mode {asked} is the same as training on it alone.")
    if synchronises and mode == Mode.SINGLE:
        notes.append("With one device there is nothing to synchronise.")
    elif synchronises and not mode.is_apart:
        notes.append(f"In mode {mode} the devices are in step at all times, so a sync interval has no effect.")
    return tuple(notes)


def check_gloo(platform: Platform) -> None:
    """Refuse torch builds for Windows that lack gloo; raises `PreflightError`."""
    if platform.name == "windows" and _version(platform.torch_version) in _WITHOUT_GLOO_ON_WINDOWS:
        raise PreflightError(
            f"torch {platform.torch_version} for Windows was built without gloo, so its devices cannot be connected.",
            f"Install torch {GOOD_TORCH}, or choose parallel-independent, which does not need it.",
            title="This torch build cannot connect devices",
        )


def _mode(config: RunConfig, devices: Sequence[Device], platform: Platform) -> tuple[Mode, tuple[str, ...]]:
    if not devices:
        raise ConfigError("devices", "No device was chosen.", "Choose at least one, for example cpux2 or cuda:0.")
    several = len(devices) > 1
    mode = config.mode
    notes: tuple[str, ...] = ()
    if mode == Mode.SINGLE and several:
        raise ConfigError(
            "devices",
            f"Mode single trains on one device, and {len(devices)} were chosen.",
            "Choose one device, or another mode: ddp or independent.",
        )
    if mode == Mode.AUTO:
        if not several:
            mode = Mode.SINGLE
        elif config.sync_every is not None:
            mode, notes = Mode.INDEPENDENT, (f"{NO_MODE}a sync interval selects independent training.",)
        elif platform.name == "windows":
            mode, notes = Mode.INDEPENDENT, (f"{NO_MODE}under Windows several devices train independently.",)
        else:
            mode, notes = Mode.DDP, (f"{NO_MODE}several devices train together (DDP).",)
    elif not several and mode.is_sharded:
        raise _nothing_to_share(mode, config.zero_stage, devices[0])
    elif not several and mode != Mode.SINGLE:
        mode = Mode.SINGLE
    if mode.is_connected:
        if len({device.kind for device in devices}) > 1:
            raise ConfigError(
                "devices",
                f"Mode {mode} needs devices of one kind, and GPUs and CPU devices were chosen.",
                "Leave out one kind, or choose mode independent.",
            )
        check_gloo(platform)
    rule = resolve_synchronisation(config) if mode.is_apart else None
    if rule is not None:
        check_gloo(platform)
        notes = (*notes, f"The devices' weights are synchronised {rule.text}.")
    return mode, (*notes, *not_as_asked(config.mode, mode, synchronises=config.sync_every is not None))


def _engine(config: RunConfig, mode: Mode, platform: Platform) -> tuple[str, tuple[str, ...]]:
    """Return the engine of a sharding mode, and notes for the user.

    `auto` is DeepSpeed where it can be imported, else PyTorch's own; mode fsdp is always PyTorch's.
    """
    if not mode.is_sharded:
        return "", ()
    by_deepspeed = mode.traits.by_deepspeed
    if config.zero_engine == DEEPSPEED and not by_deepspeed:
        raise ConfigError(
            "zero_engine",
            f"Mode {mode} is PyTorch's own way of sharding, and the engine DeepSpeed was asked for.",
            "Choose mode zero with stage 3 for DeepSpeed, or leave the engine to auto.",
        )
    if config.zero_engine == DEEPSPEED and platform.deepspeed_version is None:
        instead = "choose the engine torch, which needs nothing more."
        raise MissingPackageError(("deepspeed",), "The engine DeepSpeed", instead)
    stage = mode.stage(config.zero_stage)
    if config.offload_parameters and stage < 3:
        raise ConfigError(
            "offload_parameters",
            f"Stage {stage} keeps whole weights on each device, so they cannot stay on the CPU.",
            "Choose stage 3, or leave the weights on the device.",
        )
    possible = config.precision != "fp16" or config.zero_engine == DEEPSPEED
    if by_deepspeed and config.zero_engine != TORCH and platform.deepspeed_version is not None and possible:
        return DEEPSPEED, ()
    if config.offload_optimizer and stage == 1:
        raise ConfigError(
            "offload_optimizer",
            "PyTorch's own stage 1 keeps the optimizer's state on the device.",
            "Choose stage 2 or 3, or the engine DeepSpeed, or leave the optimizer on the device.",
        )
    if config.offload_optimizer and not config.offload_parameters:
        note = "PyTorch's engine keeps each device's share of the weights on the CPU too, beside the optimizer."
        return TORCH, (note,)
    return TORCH, ()


def _engine_note(stage: int, engine: str, deepspeed: str | None, *, chosen: bool) -> str:
    if engine == DEEPSPEED:
        name = "DeepSpeed" if deepspeed in (None, "unknown") else f"DeepSpeed {deepspeed}"
        return f"ZeRO stage {stage} by {name} ({'chosen' if chosen else 'installed'})."
    if chosen:
        return pytorch_engine_note(stage, "")
    why = "DeepSpeed is not installed" if deepspeed is None else "DeepSpeed is not used in fp16"
    return pytorch_engine_note(stage, why)


def pytorch_engine_note(stage: int, why: str) -> str:
    """Return the note on PyTorch's engine; `why`: the reason that it is not DeepSpeed, empty if it was chosen."""
    return f"ZeRO stage {stage} by PyTorch's own engine{f': {why}' if why else ' (chosen)'}."


def _nothing_to_share(mode: Mode, stage: int, device: Device) -> ConfigError:
    variant = mode.variant(stage)
    what = f"{mode.label} stage {stage} shares" if variant.stage else f"Mode {mode} shares"
    return ConfigError(
        "devices",
        f"{what} a model's state among devices, but only one was chosen ({device_label(device)}).",
        "Choose at least two devices, or the mode single device.",
        option="--devices cpux2, or --mode single",
    )


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None
