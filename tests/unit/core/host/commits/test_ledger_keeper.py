"""Where an attempt's ledger comes from: a checkpoint, AI-OS's state file, what an attempt before left, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import StateFileError
from core.host.commits.ledger_keeper import LedgerKeeper, write_ledger
from core.protocol.messages import Claim, DataReady
from tests.helpers.made_runs import CHUNK, aios_file

CONFIG = RunConfig(dataset_chunk_size=CHUNK, epochs=1)
DATASET = {"path": "text.txt", "size_bytes": 10_000, "sha256": "ab"}
DATA = DataReady(10 * CHUNK, 1, {})


def keeper(path: Path, dataset: dict[str, Any] = DATASET) -> LedgerKeeper:
    return LedgerKeeper(path, CONFIG, dataset, "run")


def chunks_claimed(kept: LedgerKeeper) -> int:
    grants = [kept.claim(0, Claim(sequence)) for sequence in range(11)]
    return sum(not grant.exhausted for grant in grants)


def test_imported_chunks_survive_an_attempt_that_dies_before_its_first_checkpoint(tmp_path: Path) -> None:
    path = aios_file(tmp_path, chunks=3)
    first = keeper(path)
    first.prepare(DATA, None, 2, 1)
    first.claim(0, Claim(0))
    document = first.due()
    assert document is not None
    write_ledger(path, document)

    second = keeper(path)
    second.prepare(DATA, None, 2, 2)
    assert second.ledger is not None and second.ledger.setup.groups == 2
    third = keeper(path)
    third.prepare(DATA, None, 1, 1)
    assert chunks_claimed(third) == 7


def test_what_an_attempt_without_a_checkpoint_claimed_is_trained_again(tmp_path: Path) -> None:
    path = tmp_path / "chunk_tracker_state.json"
    first = keeper(path)
    first.prepare(DATA, None, 2, 1)
    first.claim(0, Claim(0))
    document = first.due()
    assert document is not None and document["in_progress_chunks"]
    write_ledger(path, document)
    second = keeper(path)
    second.prepare(DATA, None, 2, 1)
    assert chunks_claimed(second) == 10


def test_imported_chunks_of_another_dataset_are_refused(tmp_path: Path) -> None:
    path = aios_file(tmp_path, chunks=3)
    first = keeper(path)
    first.prepare(DATA, None, 2, 1)
    document = first.due()
    assert document is not None
    write_ledger(path, document)
    with pytest.raises(StateFileError, match="dataset has changed"):
        keeper(path, {**DATASET, "sha256": "cd"}).prepare(DATA, None, 2, 1)
    assert json.loads(path.read_text(encoding="utf-8"))["completed_chunks"]
