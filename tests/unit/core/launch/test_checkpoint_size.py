"""The size of a checkpoint, known from an earlier run of the same model."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.checkpoints.store import CheckpointStore
from core.config import RunConfig
from core.launch.checkpoint_size import known_checkpoint_bytes
from core.protocol.messages import CommitStaged, Position, StagedFile
from core.run_folder.store import RunStore
from tests.helpers.resolved_run import resolved_run

pytestmark = pytest.mark.windows

CONFIG = RunConfig(model="small")


def trained(runs_dir: Path, config: RunConfig, mode: str, size: int) -> None:
    """A run with one checkpoint of two ranks."""
    store = CheckpointStore(RunStore.create(runs_dir, config).checkpoints)
    number, folder = store.begin()
    (folder / "weights.safetensors").write_bytes(b"x" * size)
    part = CommitStaged(number, Position(1, 0, [], []), [StagedFile("weights.safetensors", size, "")], None)
    store.commit(number, {0: part}, {}, mode=mode, devices=["cpu:0", "cpu:1"])


def test_a_run_of_the_same_model_tells(tmp_path: Path) -> None:
    trained(tmp_path, CONFIG, "ddp", 1000)
    known = known_checkpoint_bytes(resolved_run(CONFIG, "ddp", 2), tmp_path)
    assert known is not None and 1000 <= known < 1100  # with the copy of the ledger
    independent = known_checkpoint_bytes(resolved_run(CONFIG, "independent", 2), tmp_path)
    assert independent == 2 * known
    trained(tmp_path / "copies", CONFIG, "independent", 1000)
    known = known_checkpoint_bytes(resolved_run(CONFIG, "ddp", 2), tmp_path / "copies")
    assert known is not None and 500 <= known < 550


def test_another_model_tells_nothing(tmp_path: Path) -> None:
    assert known_checkpoint_bytes(resolved_run(CONFIG, "ddp", 2), tmp_path / "none") is None
    trained(tmp_path, CONFIG.replace(model="large"), "ddp", 1000)
    (tmp_path / "no run").mkdir()
    assert known_checkpoint_bytes(resolved_run(CONFIG, "ddp", 2), tmp_path) is None
