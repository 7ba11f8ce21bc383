"""A drive that fills up while a run trains: fewer checkpoints, a warning, then an orderly stop; all on a real one."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.host_fixture import FINISHED, LIMIT_S, STOPPED, FakeRun, quick_starts
from tests.helpers.small_drive import small_drive

MIB = 1 << 20
DRIVE_MIB = 44
RESERVE_MIB = 16
PART_MIB = 1


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    """A drive with room for about eight checkpoints."""
    with small_drive(tmp_path / "small drive", DRIVE_MIB) as folder:
        yield folder


@pytest.fixture
def run(
    request: pytest.FixtureRequest, drive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeRun]:
    """A run on the small drive whose checkpoints take 2 MiB each."""
    with quick_starts(request, monkeypatch):
        made = FakeRun(
            tmp_path, drive, keep_checkpoints=100, disk_reserve=RESERVE_MIB / 1024, early_stop_patience=10**6
        )
        made.behave(steps=100_000, step_s=0.02, commit_every=40, ballast=PART_MIB * MIB)
        made.behave(eval_every=10, val_losses=[3.0, 1.0, 2.0])
        yield made
        made.close()


def kinds(run: FakeRun) -> list[str]:
    """The alerts so far."""
    return [line["kind"] for line in run.events("alert")]


def fill(run: FakeRun, drive: Path, until: str) -> None:
    """Another program writes a MiB between two checkpoints, again and again, until the run says so."""
    deadline = time.monotonic() + LIMIT_S
    while until not in kinds(run):
        assert time.monotonic() < deadline, run.log()
        with (drive / "others.bin").open("ab") as file:
            file.write(b"x" * MIB)
        known = len(run.events("commit"))
        while len(run.events("commit")) == known and run.store.state().is_live and time.monotonic() < deadline:
            time.sleep(0.05)


def steps_held(run: FakeRun) -> list[int]:
    """The steps of the checkpoints that exist."""
    manifests = [json.loads(path.read_text(encoding="utf-8")) for path in run.store.checkpoints.glob("*/manifest.json")]
    return sorted(manifest["step"] for manifest in manifests)


def test_a_run_on_a_drive_that_fills_up_is_saved_and_stopped_before_it_is_full(run: FakeRun, drive: Path) -> None:
    run.start()
    run.wait_for_event("alert")
    assert kinds(run) == ["disk_low"]
    deadline = time.monotonic() + LIMIT_S
    while len(run.checkpoints()) > 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert 20 in steps_held(run)  # the best, removed neither now nor later
    free = shutil.disk_usage(drive).free
    (drive / "a film.bin").write_bytes(b"x" * (free - 30 * MIB))
    assert run.store.state().state == "training"
    fill(run, drive, "disk_full")
    state = run.end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert kinds(run) == ["disk_low", "disk_full"]
    assert "saved and stopped" in state.stopped_by
    assert run.events("stop_requested")[0]["by"] == "disk_reserve"
    assert "A checkpoint could not be saved" not in run.store.metrics.read_text(encoding="utf-8")
    assert steps_held(run) == [20, state.step]
    assert run.store.model.is_file()
    assert shutil.disk_usage(drive).free >= RESERVE_MIB * MIB
    for name in ("a film.bin", "others.bin"):
        (drive / name).unlink()
    run.behave(steps=state.step + 20).resume()
    assert run.end().state == FINISHED
    assert run.steps(0) == list(range(1, state.step + 21))
