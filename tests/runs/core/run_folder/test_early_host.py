"""Hosts that are started while their run is still being checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.run_folder import early_host
from core.run_folder.early_host import EarlyHost
from tests.helpers.host_fixture import FINISHED, MakeRun, make_run

__all__ = ["make_run"]

pytestmark = [pytest.mark.windows, pytest.mark.spawned]
LIMIT_S = 30.0


@pytest.fixture
def early() -> Iterator[EarlyHost]:
    with EarlyHost() as host:
        yield host


def process_of(early: EarlyHost) -> psutil.Process:
    assert early.process is not None
    return psutil.Process(early.process.pid)


def test_an_early_host_hosts_the_run_it_is_given(make_run: MakeRun, early: EarlyHost) -> None:
    pid = process_of(early).pid
    run = make_run().behave(steps=100_000, step_s=0.01).start(early)
    run.wait_for_step(1)
    early.__exit__(None, None, None)  # takes nothing back
    if sys.platform != "win32":  # where a virtual environment's python.exe runs the real one as its child
        assert run.host.pid == pid
    run.stop()
    assert run.end().exit_code == 0
    assert "state: starting → training" in run.store.logs.joinpath("host.log").read_text(encoding="utf-8")
    command = json.loads(run.store.environment.read_text(encoding="utf-8"))["command"]
    assert command[-1] == str(run.run_dir)
    assert early.take(run.run_dir) is None  # it takes one run


def test_an_early_host_ends_where_there_is_no_run(tmp_path: Path) -> None:
    with EarlyHost() as early:
        process, folder = process_of(early), early._folder
    assert not process.is_running()
    assert early.take(tmp_path) is None
    assert not list(tmp_path.iterdir())
    assert folder is not None and not folder.exists()


def test_an_early_host_ends_where_the_program_that_asked_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_host, "_LIMIT_S", 0.0)
    assert early_host.wait_for_run(tmp_path) == ""
    early = EarlyHost()
    early._folder = tmp_path
    assert not early._order(str(tmp_path)), "a run that comes too late gets another host"


def test_a_run_gets_another_host_where_the_early_one_has_died(make_run: MakeRun, early: EarlyHost) -> None:
    process = process_of(early)
    process.kill()
    psutil.wait_procs([process], LIMIT_S)
    run = make_run().behave(steps=2).start(early)
    assert run.end().state == FINISHED


def test_a_host_that_cannot_be_imported_says_so_in_the_runs_log(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "orjson.py").write_text("raise ImportError('broken on purpose')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    with EarlyHost() as early:
        run = make_run().start(early)
    assert not run.end().is_live
    assert "ImportError: broken on purpose" in (run.store.logs / "host.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("order", ["", None], ids=["cut off", "folder gone"])
def test_an_order_that_never_comes_is_waited_for_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str | None
) -> None:
    monkeypatch.setattr(early_host, "_LIMIT_S", 0.0)
    monkeypatch.setattr(early_host, "_GRACE_S", 0.05)
    folder = tmp_path if order is not None else tmp_path / "gone"
    if order is not None:
        (folder / "order").write_text(order, encoding="utf-8")
    assert early_host.wait_for_run(folder) == ""
