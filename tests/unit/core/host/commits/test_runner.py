"""The effects of commits: what lies on the disk after a checkpoint that was not finished."""

from __future__ import annotations

import asyncio
import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.checkpoints.store import CheckpointStore
from core.config import RunConfig
from core.host.commits.ledger_keeper import LedgerKeeper
from core.host.commits.runner import CommitRunner
from core.host.services import HostServices
from tests.helpers.resolved_run import made_ranks


def test_a_folder_into_which_a_rank_wrote_while_it_was_removed_goes_once_no_rank_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, checkpoints = shutil.rmtree, CheckpointStore(tmp_path / "checkpoints")

    def written_into(folder: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(folder))

    async def story() -> None:
        with ThreadPoolExecutor(1) as disk:
            services = HostServices(Mock(), checkpoints, disk, Mock(), Mock(), Mock(), Mock())
            keeper = LedgerKeeper(tmp_path / "chunk_tracker_state.json", RunConfig(), {}, "run")
            commits = CommitRunner(services, keeper, made_ranks("ddp", 2), 1)
            commits.coordinator.begin(0, 5, "steps")
            await commits.settle(5.0)
            (folder,) = checkpoints.dir.iterdir()
            (folder / "rank0.json").write_text("{}", encoding="utf-8")
            monkeypatch.setattr(shutil, "rmtree", written_into)
            commits.coordinator.abandon("The attempt has ended.")
            await commits.settle(5.0)
            assert folder.exists()
            monkeypatch.setattr(shutil, "rmtree", remove)
            commits.coordinator.begin(0, 6, "steps")  # from a rank that still lives
            await commits.remove_unfinished(5.0)

    asyncio.run(story())
    assert list(checkpoints.dir.iterdir()) == []
