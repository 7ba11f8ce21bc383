"""Processes that leave a run's sessions: they end with it, or with the next thing that is done to it. Linux."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core.client import end_leftovers, find_leftovers
from core.config.config_file import to_toml
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun

pytestmark = [
    pytest.mark.spawned,
    pytest.mark.skipif(
        sys.platform != "linux", reason="marks are read from /proc; Windows' Job Object is tested in test_process_tree"
    ),
]

ROOT = Path(__file__).resolve().parents[3]
DEAF = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(json.loads(os.environ["RANKDECK_RANK"])["run_dir"], "daemon.pid"), "w").write(str(os.getpid()))
time.sleep(600)
"""
START = """
import sys
from pathlib import Path
from core.client import start_run
from core.config.config_file import read_config
from core.config.layers import config_from_mapping
asked, folder = map(Path, sys.argv[1:])
start_run(config_from_mapping(read_config(asked), source=asked), run_dir=folder)
"""


def daemon_of(run: FakeRun) -> psutil.Process:
    """The process that has left everything."""
    note = run.run_dir / "daemon.pid"
    deadline = time.monotonic() + 30.0
    while not note.exists() or not note.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return psutil.Process(int(note.read_text()))


def gone(process: psutil.Process) -> bool:
    return bool(psutil.wait_procs([process], timeout=10.0)[0])


def kill_host_and_watcher(run: FakeRun) -> None:
    """As the out-of-memory killer may."""
    host = run.host
    ranks = {process.pid for process in run.ranks()}
    watchers = [child for child in host.children() if child.pid not in ranks]
    assert len(watchers) == 1
    for process in (*watchers, host):
        process.suspend()
    for process in (*watchers, host):
        process.kill()
    psutil.wait_procs([host, *watchers], timeout=10.0)


def training(run: FakeRun) -> psutil.Process:
    run.behave(steps=100_000, step_s=0.01).behave(0, daemon=DEAF).start().wait_for_step(3)
    return daemon_of(run)


def test_a_stop_now_ends_what_has_left_its_session(make_run: MakeRun) -> None:
    run = make_run()
    daemon = training(run)
    assert run.stop(now=True).end().state == STOPPED
    assert gone(daemon)


def test_a_resume_ends_what_a_host_killed_with_its_watcher_left(make_run: MakeRun) -> None:
    run = make_run()
    daemon = training(run)
    kill_host_and_watcher(run)
    assert daemon.is_running()
    assert find_leftovers([run.store]) == {run.store.dir: [daemon.pid]}
    run.behave(steps=20, step_s=0.0).behave(0, daemon="").resume()
    assert run.end().state == FINISHED
    assert gone(daemon)
    (alert,) = run.events("alert")
    assert (alert["kind"], str(daemon.pid) in alert["cause"]) == ("leftovers", True)
    assert find_leftovers([run.store]) == {}


def test_the_command_stop_ends_leftovers(make_run: MakeRun) -> None:
    run = make_run()
    daemon = training(run)
    kill_host_and_watcher(run)

    def rankdeck(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "core", *words]
        env = {**os.environ, "RANKDECK_HOME": str(run.run_dir.parent)}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", timeout=60.0)

    stopped = rankdeck("stop", str(run.run_dir))
    assert stopped.returncode == 0, stopped
    assert f"ended 1 process (pid {daemon.pid})" in stopped.stdout + stopped.stderr
    assert gone(daemon)
    again = rankdeck("stop", str(run.run_dir))
    assert again.returncode == 2 and "Resume it: rankdeck resume" in again.stderr


def test_leftovers_of_a_live_run_are_none(make_run: MakeRun) -> None:
    run = make_run()
    daemon = training(run)
    assert find_leftovers([run.store]) == {}
    with pytest.raises(Exception, match="is the host of the run"):
        end_leftovers(run.store)
    assert daemon.is_running()


def test_a_run_started_from_within_a_run_survives_its_parents_stop(make_run: MakeRun, tmp_path: Path) -> None:
    inner, outer = make_run(), make_run()
    inner.run_dir.mkdir(parents=True)
    inner.behave(steps=100_000, step_s=0.01)
    asked = tmp_path / "asked.toml"
    asked.write_text(to_toml(inner.config), encoding="utf-8", newline="\n")
    command = [sys.executable, "-c", START, str(asked), str(inner.run_dir)]
    code = f"import subprocess; subprocess.run({command!r}, cwd={str(ROOT)!r}, check=True)"
    outer.behave(steps=100_000, step_s=0.01).behave(0, daemon=code).start().wait_for_step(3)
    deadline = time.monotonic() + 30.0
    while not inner.store.metrics.exists():
        assert time.monotonic() < deadline, outer.log()
        time.sleep(0.05)
    inner.wait_for_step(3)
    assert outer.stop(now=True).end().state == STOPPED
    before = inner.steps()[-1]
    inner.wait_for_step(before + 50)
    assert inner.store.state().state == "training"
    assert inner.stop(now=True).end().state == STOPPED
