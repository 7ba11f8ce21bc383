"""Notes on low-level settings that do nothing as asked: DDP's own arguments, backend, cuDNN, memory segments."""

from __future__ import annotations

from core.config.mode import Mode
from core.launch.mode import TORCH
from core.launch.resolved import ResolvedRun


def low_level_notes(run: ResolvedRun) -> tuple[str, ...]:
    """One sentence for each setting that was changed and does nothing here.

    Args:
        run: What was decided.
    """
    config, choice, devices, platform = run.config, run.choice, run.devices, run.platform
    notes = []
    by_ddp = choice.mode == Mode.DDP or (choice.mode == Mode.ZERO and config.zero_stage == 1 and choice.engine == TORCH)
    if not by_ddp and config.find_unused_parameters:
        notes.append("find_unused_parameters has an effect in mode ddp and with PyTorch's own ZeRO stage 1 only.")
    if not by_ddp and not config.broadcast_buffers and len(devices) > 1:
        notes.append("broadcast_buffers has an effect in mode ddp and with PyTorch's own ZeRO stage 1 only.")
    if by_ddp and config.static_graph and config.find_unused_parameters:
        notes.append("static_graph finds unused parameters in the first step, so find_unused_parameters adds nothing.")
    if config.backend != "auto" and not run.backend:
        notes.append(f"backend {config.backend} has no effect: no tensors are exchanged between devices in this run.")
    on_gpu = any(device.kind == "cuda" for device in devices)
    if config.cudnn_benchmark and not on_gpu:
        notes.append("cudnn_benchmark has an effect on GPUs only.")
    if config.expandable_segments and not (on_gpu and platform.name == "linux"):
        notes.append("expandable_segments has an effect on GPUs under Linux only.")
    return tuple(notes)
