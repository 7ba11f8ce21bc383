"""Notes on low-level settings that do nothing as asked: DDP's own arguments, backend, cuDNN, memory segments."""

from __future__ import annotations

from collections.abc import Sequence

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.mode import TORCH, ModeChoice, backend_of
from core.machine.devices.device import Device
from core.machine.platform import Platform


def low_level_notes(
    config: RunConfig, choice: ModeChoice, devices: Sequence[Device], platform: Platform
) -> tuple[str, ...]:
    """One sentence for each setting that was changed and does nothing here.

    Args:
        config: What was asked.
        choice: The mode that it comes to.
        devices: What it runs on.
        platform: The machine.
    """
    notes = []
    by_ddp = choice.mode == Mode.DDP or (choice.mode == Mode.ZERO and config.zero_stage == 1 and choice.engine == TORCH)
    if not by_ddp and config.find_unused_parameters:
        notes.append("find_unused_parameters has an effect in mode ddp and with PyTorch's own ZeRO stage 1 only.")
    if not by_ddp and not config.broadcast_buffers and len(devices) > 1:
        notes.append("broadcast_buffers has an effect in mode ddp and with PyTorch's own ZeRO stage 1 only.")
    if by_ddp and config.static_graph and config.find_unused_parameters:
        notes.append("static_graph finds unused parameters in the first step, so find_unused_parameters adds nothing.")
    if config.backend != "auto" and not backend_of(config, choice.mode, devices, platform):
        notes.append(f"backend {config.backend} has no effect: no tensors are exchanged between devices in this run.")
    on_gpu = any(device.kind == "cuda" for device in devices)
    if config.cudnn_benchmark and not on_gpu:
        notes.append("cudnn_benchmark has an effect on GPUs only.")
    if config.expandable_segments and not (on_gpu and platform.name == "linux"):
        notes.append("expandable_segments has an effect on GPUs under Linux only.")
    return tuple(notes)
