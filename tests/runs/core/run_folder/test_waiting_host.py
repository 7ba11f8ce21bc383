"""Hosts that are started while their run is still being checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.run_folder.waiting_host import WaitingHost
from tests.helpers.host_fixture import FINISHED, MakeRun, make_run

__all__ = ["make_run"]

pytestmark = [pytest.mark.windows, pytest.mark.spawned]
LIMIT_S = 30.0


@pytest.fixture
def waiting() -> Iterator[WaitingHost]:
    with WaitingHost() as host:
        yield host


def process_of(waiting: WaitingHost) -> psutil.Process:
    assert waiting.process is not None
    return psutil.Process(waiting.process.pid)


def test_a_waiting_host_hosts_the_run_it_is_given(make_run: MakeRun, waiting: WaitingHost) -> None:
    pid = process_of(waiting).pid
    run = make_run().behave(steps=100_000, step_s=0.01).start(waiting)
    run.wait_for_step(1)
    waiting.__exit__(None, None, None)  # takes nothing back
    if sys.platform != "win32":  # where a virtual environment's python.exe runs the real one as its child
        assert run.host.pid == pid
    run.stop()
    assert run.end().exit_code == 0
    assert "state: starting → training" in run.store.logs.joinpath("host.log").read_text(encoding="utf-8")
    command = json.loads(run.store.environment.read_text(encoding="utf-8"))["command"]
    assert command[-1] == str(run.run_dir)
    assert waiting.take(run.run_dir) is None  # it takes one run


def test_a_waiting_host_ends_where_there_is_no_run(tmp_path: Path) -> None:
    with WaitingHost() as waiting:
        process = process_of(waiting)
    assert not psutil.wait_procs([process], LIMIT_S)[1]
    assert waiting.take(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_run_gets_another_host_where_the_waiting_one_has_died(make_run: MakeRun, waiting: WaitingHost) -> None:
    process = process_of(waiting)
    process.kill()
    psutil.wait_procs([process], LIMIT_S)
    run = make_run().behave(steps=2).start(waiting)
    assert run.end().state == FINISHED


def test_a_host_that_cannot_be_imported_says_so_in_the_runs_log(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "orjson.py").write_text("raise ImportError('broken on purpose')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    with WaitingHost() as waiting:
        run = make_run().start(waiting)
    assert not run.end().is_live
    assert "ImportError: broken on purpose" in (run.store.logs / "host.log").read_text(encoding="utf-8")
