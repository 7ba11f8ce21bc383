"""A run under torchrun, seen by `rankdeck attach`; and a script of the user's own under torchrun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from core.run_folder.store import RunStore, list_runs
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun
from tests.helpers.launched import Job, torchrun, train, wait

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform == "win32", reason="torchrun does not work on Windows (libuv)"),
]
Start = Callable[..., Job]
SCRIPT = """
import os, time
for step in range(1, 6):
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    time.sleep(0.05)
print("I am", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "at", os.environ["MASTER_PORT"])
"""


def long_run(tmp_path: Path, runs_dir: Path) -> FakeRun:
    run = FakeRun(tmp_path, runs_dir)
    run.run_dir.mkdir(parents=True)
    run.behave(steps=5000, step_s=0.02)
    return run


def test_attach_follows_it_and_leaves_it(start: Start, tmp_path: Path, runs_dir: Path) -> None:
    run = long_run(tmp_path, runs_dir)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    attached = subprocess.Popen(
        [sys.executable, "-m", "core", "attach", run.run_dir.name, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert attached.stdout is not None and attached.stderr is not None
    assert b"{" in attached.stdout.readline()
    attached.send_signal(signal.SIGINT)
    attached.communicate(timeout=60)
    assert run.store.state().is_live, "it continues without the one who looked"
    run.stop()
    assert job.end() == 0, job.output
    assert run.end().state == STOPPED


def test_a_script_of_the_users_own_under_torchrun(start: Start, tmp_path: Path, runs_dir: Path) -> None:
    script = tmp_path / "train me.py"
    script.write_text(SCRIPT, encoding="utf-8", newline="\n")
    job = start([*torchrun(2), "-m", "core", "run", "--env", "TORCHELASTIC_USE_AGENT_STORE=False", str(script)])
    assert job.end() == 0, job.output
    (entry,) = list_runs(runs_dir)
    store = RunStore(entry.path)
    assert (store.state().state, store.state().world_size) == (FINISHED, 2)
    printed = [(store.logs / f"rank{rank}.log").read_text(encoding="utf-8") for rank in range(2)]
    assert "I am 0 of 2 at " in printed[0] and "I am 1 of 2 at " in printed[1]
    assert printed[0].rsplit(maxsplit=1)[-1] == printed[1].rsplit(maxsplit=1)[-1], "they meet at one port"


def test_a_frozen_agent_is_not_taken_for_a_dead_one(start: Start, tmp_path: Path, runs_dir: Path) -> None:
    run = long_run(tmp_path, runs_dir)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    os.kill(job.process.pid, signal.SIGSTOP)
    step = run.steps()[-1]
    run.wait_for_step(step + 60)
    assert job.process.status() == psutil.STATUS_STOPPED
    os.kill(job.process.pid, signal.SIGCONT)
    run.stop()
    assert job.end() == 0, job.output
    wait(lambda: not run.store.is_locked(), "the end of the host")
