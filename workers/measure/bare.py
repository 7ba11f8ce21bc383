"""Memory of a rank that trains next to nothing: Python, PyTorch and a mode's engine by themselves."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch
from torch import nn

from core.config import RunConfig
from core.config.batch import Batch
from core.config.mode import Mode
from workers.host_link.peak_memory import peak_memory
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipe_api.run import Run as _Run  # noqa: F401  # as in a rank: imports all that a recipe may need
from workers.state_files.safetensors_files import snapshot
from workers.state_files.slices import bare
from workers.strategies import RankPlace, make_strategy
from workers.strategies.deepspeed.engine import DeepSpeedError

_STEPS: Final = 2
# Mode, ZeRO stage and engine of each kind of process; independent ranks are those of mode single.
_ENGINES: Final = {
    "single": (Mode.SINGLE, 1, ""),
    "ddp": (Mode.DDP, 1, ""),
    "zero1": (Mode.ZERO, 1, "torch"),
    "fsdp": (Mode.FSDP, 3, "torch"),
    "deepspeed": (Mode.ZERO, 2, "deepspeed"),
}


def baselines(engines: Sequence[str], folder: Path) -> dict[str, dict[str, int]]:
    """Train a tiny model by each engine in turn, alone in its group, and return the process's peak after each.

    Each brings little beyond the one before, so one process serves for all in the order of `_ENGINES`. A DeepSpeed that
    cannot be used is left out: the estimates of all other modes do not depend on it.
    """
    found: dict[str, dict[str, int]] = {}
    for engine in engines:
        try:
            _train(engine, folder)
        except DeepSpeedError as error:
            sys.stderr.write(f"{error}\n")
            continue
        found[engine] = peak_memory(None)
    return found


def _train(engine: str, folder: Path) -> None:
    """Make a few steps and the copy of a checkpoint, as a rank does."""
    mode, stage, by = _ENGINES[engine]
    rendezvous = (folder / f"rendezvous-{secrets.token_hex(4)}").as_uri() if mode is not Mode.SINGLE else ""
    place = RankPlace(0, 1, torch.device("cpu"), "gloo" if rendezvous else "", rendezvous)
    config = RunConfig(mode=mode, zero_stage=stage, zero_engine=by or "auto", batch_size=1, precision="fp32")
    strategy = make_strategy(mode, place, config, Batch.of(1, 1, 1))
    try:
        strategy.setup()
        precision = Precision("fp32", place.device)
        replica = strategy.replicate(nn.Sequential(nn.Linear(16, 16)), Optimization(clip_norm=1.0), 1e-3, precision)
        for _ in range(_STEPS):
            with replica.micro_batch(last=True):
                replica.backward(replica.module(torch.ones(2, 16)).square().mean(), last=True)
            replica.update()
        for part in replica.parts():
            snapshot(bare(part.tensors))
    finally:
        strategy.close()
