"""Checkpoint size before a run: known from the newest earlier run of the same model, for the check of the disk."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

from core.checkpoints.store import Checkpoint, CheckpointStore
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.run_folder.store import RunStore

# Checkpoints that an orderly stop may write: the last one, and the exported model, which is never larger.
FOR_THE_END: Final = 2
# Reading a run's settings takes about a millisecond.
MOST_RUNS: Final = 30


def known_checkpoint_bytes(run: ResolvedRun, runs_dir: Path) -> int | None:
    """Return the bytes of one checkpoint of this run; None if no recent run trained the same model."""
    try:
        seen = (
            item for item in runs_dir.iterdir() if _modified(item) and item.is_dir()
        )  # what cannot be is passed over
        folders = sorted(seen, key=_modified, reverse=True)
    except OSError:
        return None
    model = _model(run.config)
    for folder in itertools.islice(folders, MOST_RUNS):
        made = _newest_of_same_model(RunStore(folder), model)
        if made is not None:
            groups = Mode.read(made.mode).replica_groups(made.world_size)
            return made.size_bytes * run.replica_groups // max(groups, 1)
    return None


def _newest_of_same_model(store: RunStore, model: tuple[object, ...]) -> Checkpoint | None:
    try:
        if _model(store.config()) != model:
            return None
        return next(reversed(CheckpointStore(store.checkpoints).list()), None)
    except RankdeckError:  # no run, or a damaged one
        return None


def _model(config: RunConfig) -> tuple[object, ...]:
    return config.recipe, config.model, config.seq_len, config.precision, config.gradient_exchange, config.options


def _modified(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
