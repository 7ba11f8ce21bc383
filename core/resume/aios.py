"""Resume plan of AI-OS's state file: a new run trains the chunks that are left; nothing in its folder is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.config.layers import config_from_given, normalise, with_absolute_paths
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.data.dataset import DatasetIdentity, check_size, estimate_samples, identify
from core.errors import DatasetError, StateFileError, UsageError
from core.launch.preflight import check_engine, check_folder, check_torch, needed_bytes
from core.launch.resolved import resolve
from core.ledger.chunk_grid import ChunkGrid
from core.ledger.ledger import Ledger
from core.ledger.progress import LedgerProgress
from core.ledger.state_file import LedgerFile
from core.machine.devices import Device
from core.machine.devices.names import device_label
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from core.resume.changes import device_count_notes, other_chunk_size
from core.resume.plan import ResumePlan


def plan_aios(
    file: LedgerFile, runs_dir: Path, changes: dict[str, Any], available: Sequence[Device], platform: Platform
) -> ResumePlan:
    """Plan to train the rest of an AI-OS run as a new run; raises as `core.resume.planner.plan_resume`."""
    config = _config(file, changes)
    recipe = get_recipe(config.recipe)
    run = resolve(config, recipe, available, platform)
    config, devices, mode = run.config, run.devices, run.mode
    check_engine(run)
    identity = identify(config.dataset_file, config.data_files)
    check_size(identity, config.seq_len)
    progress = _progress(file, config, identity, len(devices), mode)
    check_torch(platform)
    check_folder(runs_dir, needed_bytes=needed_bytes(config, None, identity.size_bytes))
    return ResumePlan(
        run_dir=None,
        runs_dir=runs_dir,
        config=config,
        progress=progress,
        mode_now=mode,
        devices_now=tuple(device.uuid for device in devices),
        device_labels={device.uuid: device_label(device) for device in available},
        warnings=(*device_count_notes(changes), *run.device_notes, *_warnings(file)),
        state_file=file,
    )


def _config(file: LedgerFile, changes: dict[str, Any]) -> RunConfig:
    if changes.get("dataset_file") is None:
        named = f" (it was called {file.dataset_name!r})" if file.dataset_name else ""
        raise DatasetError(
            f"{file.path} does not contain its dataset's path{named}.",
            "Choose the dataset.",
            title="The dataset's path is unknown",
            option="--dataset-file FILE",
        )
    chunk_size = file.chunk_size
    given = with_absolute_paths(normalise(changes), Path.cwd())
    recipe = get_recipe(str(given.values.get("recipe") or RunConfig().recipe))
    base = RunConfig(**recipe_defaults(recipe, {*given.values, "steps", "epochs"}, given.values))
    base = base.replace(samples_per_block=RunConfig().samples_per_block)
    config = config_from_given(given, base, recipe.fields)
    if chunk_size is not None and "dataset_chunk_size" in changes and config.dataset_chunk_size != chunk_size:
        raise other_chunk_size(str(file.path), chunk_size, config.dataset_chunk_size)
    if "dataset_chunk_size" not in changes:
        config = config.replace(dataset_chunk_size=chunk_size or RunConfig().dataset_chunk_size)
    if config.steps is None and config.epochs is None:
        config = config.replace(epochs=file.current_epoch + 1)
    return config


def _progress(file: LedgerFile, config: RunConfig, identity: DatasetIdentity, world: int, mode: Mode) -> LedgerProgress:
    samples = max(1, estimate_samples(identity, config.seq_len, config.held_out))
    grid = ChunkGrid(samples, config.samples_per_block, config.dataset_chunk_size)
    if file.total_blocks is not None and file.total_blocks > grid.blocks:
        raise StateFileError(
            f"{file.path} was made with a dataset of {file.total_blocks} blocks; {identity.path} has at most "
            f"{grid.blocks} of {config.samples_per_block} samples.",
            "Choose the dataset that the file was made with.",
            option="--dataset-file FILE",
        )
    cut = (samples, config.samples_per_block, config.dataset_chunk_size, config.seed)
    ledger = Ledger.new(identity.as_dict(), *cut, world, mode.replica_groups(world), config.epochs)
    # Before the tokens are counted the number of blocks is only an upper limit.
    ledger.import_aios(replace(file, total_blocks=None))
    progress = ledger.progress()
    if progress.finished:
        raise UsageError(
            f"Every chunk of {file.path} is done for the {config.epochs} epochs asked for.",
            "Train longer.",
            title="Nothing is left to train",
            option=f"--epochs {(config.epochs or 0) + 1}",
        )
    return progress


def _warnings(file: LedgerFile) -> tuple[str, ...]:
    warnings = [
        "AI-OS's weights are not read: the new run starts with fresh ones and trains the remaining chunks.",
        "AI-OS cuts text into samples differently, so the same chunk number means different text here.",
        f"Nothing in {file.path.parent} is changed.",
        *file.notes,
    ]
    if file.chunk_size is None:
        warnings.append(
            f"The folder's name does not say the chunk size; {RunConfig().dataset_chunk_size} is taken unless "
            "you give another chunk size."
        )
    return tuple(warnings)
