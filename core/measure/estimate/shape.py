"""Shape of a run: a hash of everything on which figures depend, under which they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from core.launch.environment import cpu_threads
from core.launch.resolved import ResolvedRun
from core.machine.devices.device import Device
from core.recipes.manifest import Recipe

_VERSION: Final = 1
_FIGURES_VERSION: Final = 5

# A device's model, its processor threads, and how many devices make their steps at the same time (`step_key`).
StepKey = tuple[str, int, int]


def step_key(device: Device, run: ResolvedRun) -> StepKey:
    """Return the key of a device's steps in a run: CPU devices share the machine's cores."""
    threads = 0 if device.kind == "cuda" else cpu_threads(run.platform, run.world_size)
    return device.model[0], threads, run.world_size


def model_shape(run: ResolvedRun) -> str:
    """Hash the recipe's model with its settings on this kind of device; neither micro-batch nor mode."""
    return _hash([*_model(run), "figures", _FIGURES_VERSION])


def steps_shape(run: ResolvedRun, key: StepKey) -> str:
    """Hash a step of that model on one device with a number of threads, beside the run's other devices or alone."""
    beside = sorted(device.name for device in run.devices) if key[2] > 1 and run.devices[0].kind == "cuda" else []
    return _hash([*_model(run), "steps", *key, beside, run.batch.micro, run.batch.accumulation])


def link_name(run: ResolvedRun) -> str:
    """Name the link between a run's devices, whatever it trains."""
    uuids = sorted(device.uuid for device in run.devices)
    return f"link-{_hash([_VERSION, run.platform.torch_version, uuids])}"


def _model(run: ResolvedRun) -> list[Any]:
    config, recipe = run.config, run.recipe
    facts: list[Any] = [_VERSION, run.platform.torch_version, run.devices[0].kind, recipe.name, _files(recipe)]
    facts += [config.seq_len, config.model, config.precision, config.dataset_file]
    facts += [sorted((name, str(value)) for name, value in config.options.items())]
    if recipe.own_samples:
        facts += [config.samples_per_block, config.dataset_chunk_size, run.batch.global_]
    return facts


def _files(recipe: Recipe) -> Sequence[tuple[str, int, int]]:
    stats = [(path.name, path.stat()) for path in sorted(recipe.folder.glob("*.py"))]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _hash(facts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()[:32]
