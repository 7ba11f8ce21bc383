"""A bad night in small: memory, a poisoned sample, a rank that stands still and a full drive, all in one run."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch", reason="trains for real")

import torch

from core.checkpoints.store import CheckpointStore
from core.host.watches.disk import SPACE_EVERY_S
from core.ledger.state_file import read_state_file
from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, processes, write_text
from tests.helpers.small_drive import small_drive
from workers.state_files.saved_state import SavedState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MIB = 1 << 20
SAMPLES = 8_000
POISONED = 133
# Samples of a step, on both ranks together.
BATCH = 8
SHORT_FROM = 13
STANDSTILL_S = 90.0
RESERVE_MIB = 16
LIMIT_S = 600.0 if sys.platform == "win32" else 300.0


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    with small_drive(tmp_path / "small drive", 36) as folder:
        yield folder


def make_night(drive: Path, folder: Path, **settings: Any) -> RunStore:
    """Two ranks over one epoch; every setting that a fault meets has its default."""
    return make_run(
        drive / "run",
        write_text(folder / "text.txt"),
        "ddp",
        2,
        recipe=str(ROOT / "tests" / "helpers" / "recipes" / "counted"),
        options={"samples": SAMPLES, "poisoned": str(POISONED), "short_from": SHORT_FROM},
        epochs=1,
        lr=1.0,
        checkpoint_every_steps=20,
        disk_reserve=RESERVE_MIB / 1024,
        strict=False,
        **settings,
    )


def alerts(store: RunStore) -> dict[str, dict[str, Any]]:
    return {line["kind"]: line for line in reversed(lines(store, "alert"))}


def wait_for(reached: Callable[[], bool]) -> None:
    """Waits until the run has come to a place."""
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stop_a_rank(store: RunStore) -> None:
    """Rank 1 stands still for 90 s, as behind a debugger or a driver's reset."""
    rank = psutil.Process(processes(store)[1].pid)
    rank.suspend()
    time.sleep(STANDSTILL_S)
    rank.resume()


def fill(store: RunStore, drive: Path) -> None:
    """Another program takes the drive, a MiB at a time, until the run has been saved and stopped."""
    while "disk_full" not in alerts(store):
        with (drive / "a film.bin").open("ab") as file:
            file.write(b"x" * MIB)
        time.sleep(SPACE_EVERY_S / 8)


def disturb(store: RunStore, drive: Path | None) -> None:
    """What the night brings, one after the other; memory and the poisoned sample come from the recipe."""
    wait_for(lambda: {"out_of_memory", "non_finite"} <= alerts(store).keys())
    wait_for(lambda: len(lines(store, "commit")) > 2)
    stop_a_rank(store)
    if drive is not None:
        fill(store, drive)


def start_night(store: RunStore, drive: Path | None) -> threading.Thread:
    night = threading.Thread(target=disturb, args=(store, drive), daemon=True)
    night.start()
    return night


def test_a_night_of_faults_costs_no_sample(drive: Path, tmp_path: Path) -> None:
    store = make_night(drive, tmp_path)
    night = start_night(store, drive)
    assert host(store, timeout_s=LIMIT_S) == 0
    night.join(LIMIT_S)
    state = store.state()
    assert state.state == "stopped" and "saved and stopped" in state.stopped_by
    (drive / "a film.bin").unlink()
    assert host(store, timeout_s=LIMIT_S) == 0
    assert store.state().state == "finished"

    told = alerts(store)
    assert list(reversed(told)) == ["out_of_memory", "non_finite", "hang", "disk_low", "disk_full"], told
    check_told(told)
    assert len(lines(store, "launch")) == 3, "once with the smaller micro-batch, once resumed"
    assert not lines(store, "restart") and not lines(store, "fallback")
    check_exactly_once(store)


@pytest.mark.skipif(sys.platform != "win32", reason="with a small drive the night above has it all")
def test_a_night_without_a_full_drive_costs_no_sample(tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()
    store = make_night(tmp_path / "drive", tmp_path)
    night = start_night(store, None)
    assert host(store, timeout_s=LIMIT_S) == 0
    night.join(LIMIT_S)
    assert store.state().state == "finished"
    told = alerts(store)
    assert list(reversed(told)) == ["out_of_memory", "non_finite", "hang"], told
    check_told(told)
    assert len(lines(store, "launch")) == 2, "once with the smaller micro-batch"
    assert not lines(store, "restart") and not lines(store, "fallback")
    check_exactly_once(store)


def check_told(told: dict[str, dict[str, Any]]) -> None:
    """Rank 1 is named for what it lacked and for its standstill, and each alert says what to do."""
    assert (told["out_of_memory"]["ranks"], told["out_of_memory"]["micro_batch"]) == ([1], BATCH // 4)
    assert told["out_of_memory"]["cause"].startswith(
        f"CPU 1: Memory ran out at step {SHORT_FROM} with micro-batch 4. The"
    )
    assert (told["hang"]["ranks"], told["hang"]["certain"]) == ([1], True)
    assert all(alert["title"] and alert["cause"] and alert["next_step"] for alert in told.values())


def check_exactly_once(store: RunStore) -> None:
    """Every sample is in the weights once, or listed as skipped."""
    file = read_state_file(store.ledger)
    (batch,) = file.skipped
    gone = {number for first, last in batch.ranges for number in range(first, last + 1)}
    assert POISONED in gone and len(gone) == BATCH
    newest, damaged = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None and not damaged
    seen = (SavedState(newest.folder).weight("seen", torch.Size([SAMPLES])) * BATCH).tolist()
    assert seen == [0.0 if number in gone else 1.0 for number in range(SAMPLES)]
    assert sum(chunk.samples for chunk in file.completed) == SAMPLES
