"""Run folders as a host would leave them, made without one: for tests of what reads them."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import CheckpointStore
from core.config.lr_schedule import Schedule
from core.config.run_config import RunConfig
from core.data.dataset import identify
from core.ledger.ledger import Ledger
from core.protocol.messages import ChunkDone, CommitStaged, Position, StagedFile
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from core.run_folder.store import RunStore

CHUNK: Final = 50
TEXT: Final = b"some text to learn\n" * 4000


def tree(root: Path) -> dict[str, str]:
    """Every file under `root` with its hash, to see that nothing was changed."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
    }


def write_values(path: Path, values: dict[str, Any]) -> StagedFile:
    head = json.dumps({"__metadata__": {"rankdeck": json.dumps(values)}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    return StagedFile(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


def make_run(
    place: Path,
    state: str = "stopped",
    *,
    checkpoints: int = 2,
    runs_dir: Path | None = None,
    lr_rule: dict[str, Any] | None = None,
    **changes: Any,
) -> RunStore:
    """A run of two ranks, on `place`/text.txt, that has committed a chunk in each of its checkpoints.

    Args:
        place: Where its folder is made.
        state: What `state.json` says.
        checkpoints: How many there are.
        runs_dir: Another folder for it.
        lr_rule: What checkpoints say of the learning rate, besides its end at a tenth of the peak; the schedule ends
            at the last of them.
        changes: Settings.
    """
    base = recipe_defaults(get_recipe("minigpt"))
    values = {"dataset_file": str(place / "text.txt"), "devices": ("cpu:2",), "mode": "ddp"}
    config = RunConfig(**{**base, **values, "dataset_chunk_size": CHUNK, "steps": 100, **changes})
    store = RunStore.create(runs_dir or place, config)
    groups = 2 if config.mode == "independent" else 1
    identity = identify(config.dataset_file)
    ledger = Ledger.new(identity.as_dict(), 590, config.samples_per_block, CHUNK, config.seed, 2, groups)
    kept = CheckpointStore(store.checkpoints)
    for number in range(checkpoints):
        grants = [ledger.claim(group, number) for group in range(groups)]
        number, folder = kept.begin()
        parts = {}
        for rank in range(2):
            grant = grants[rank % groups]
            done = ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, number * 10, grant.count)
            weights = folder / f"weights{rank}.safetensors"
            weights.write_bytes(b"w" * 100)
            file = StagedFile(weights.name, 100, hashlib.sha256(b"w" * 100).hexdigest())
            files = [file]
            if lr_rule is not None and rank == 0:
                schedule = Schedule.new(10 * checkpoints, (config.steps, config.epochs)).as_dict()
                counters = {"schedule": schedule, "lr_rule": {"min_lr_ratio": 0.1, **lr_rule}}
                files.append(write_values(folder / "rank0.safetensors", {"counters": counters}))
            parts[rank] = CommitStaged(number, Position(number * 10, number * CHUNK, [done]), files)
        positions = {rank: part.position for rank, part in parts.items()}
        kept.commit(number, parts, ledger.preview(positions, number), mode=config.mode, devices=("cpu:0", "cpu:1"))
        ledger.commit(positions, number)
    if checkpoints:
        store.ledger.write_text(json.dumps(ledger.as_dict()), encoding="utf-8")
    now = store.stored_state().replace(
        state=state, mode=config.mode, devices=("cpu:0", "cpu:1"), step=checkpoints * 10, world_size=2
    )
    store.write_state(now.replace(checkpoint=checkpoints or None))
    return store


def aios_file(folder: Path, chunks: int = 3, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    completed = [
        {"block_id": 0, "chunk_id": n, "gpu_id": n % 2, "optimizer_step": n, "steps": CHUNK} for n in range(chunks)
    ]
    document = {
        "brain_id": "b",
        "dataset_name": "text",
        "completed_chunks": completed,
        "started_blocks": [0],
        "completed_blocks": [],
        "current_epoch": 0,
        "blocks_this_epoch": [],
        "total_blocks_in_dataset": 1,
        "total_steps": chunks * CHUNK,
        "in_progress_chunks": [],
        **changes,
    }
    path = folder / "chunk_tracker_state.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
