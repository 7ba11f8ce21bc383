"""Users of devices: a process is a run's where the run's host is above it, by pid and start time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.machine.devices import DeviceProcess, DeviceSample
from core.machine.devices.defaults import in_use_by
from core.processes.identity import ProcessId, ancestors, own
from core.run_folder.device_users import DeviceUsers, live_hosts, run_above
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = pytest.mark.windows
WAITS = "import sys; print(flush=True); sys.stdin.read()"
STARTS_ONE = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {WAITS!r}]))"
GIB = 2**30


def test_only_live_runs_with_a_host_count() -> None:
    host = ProcessId(7, 1.0)
    states = [RunState(run_id="a", state="training", host=host, name="The one"), RunState(run_id="b", host=None)]
    states.append(RunState(run_id="c", state="finished", host=ProcessId(8, 1.0)))
    records = [RunRecord(RunEntry(Path(state.run_id), state)) for state in states]
    assert live_hosts([*records, RunRecord(RunEntry(Path("x"), None, "It is damaged."))]) == {host: "The one"}


def test_another_process_with_the_pid_of_a_host_is_none() -> None:
    above = (ProcessId(3, 50.0), ProcessId(7, 20.0))
    assert run_above(above, {ProcessId(7, 20.4): "mine"}) == "mine"
    assert run_above(above, {ProcessId(7, 90.0): "mine"}) == "" and run_above((), {ProcessId(7, 20.0): "mine"}) == ""


def test_what_a_host_started_is_its_runs_and_nothing_else() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rank:
        assert rank.stdout is not None and rank.stdin is not None
        rank.stdout.readline()
        host, parent = ancestors(rank.pid)[0], os.getppid()
        samples = [
            DeviceSample("GPU-a", 1.0, processes=(DeviceProcess(rank.pid, "python", GIB // 4),)),
            DeviceSample("GPU-b", 1.0, processes=(DeviceProcess(parent, "python", 3 * GIB),)),
            DeviceSample("GPU-c", 1.0, processes=(DeviceProcess(2**22 + 5, "", 3 * GIB),)),
        ]
        users = DeviceUsers()
        for _ in range(2):  # the second time from what is known
            mine, others, gone = users.name(samples, {host: "my run"})
            assert in_use_by(mine) == "in use by the run my run"
            assert in_use_by(others) == f"in use by python (pid {parent}), 3.0 GiB"
            assert in_use_by(gone).startswith("in use by pid ")
        below = users.name(samples, {own(): "the run above"})
        assert below[0].processes[0].run == "the run above", "the host need not be its parent"
        assert in_use_by(users.name(samples, {})[0]) == "", "a card that something small uses is free"
        rank.stdin.close()


def test_processes_of_one_run_are_one_user() -> None:
    workers = tuple(DeviceProcess(pid, "python", GIB, run="my run") for pid in (5, 6, 7))
    sample = DeviceSample("GPU-a", 1.0, processes=(*workers, DeviceProcess(8, "python", GIB // 2)))
    assert in_use_by(sample) == "in use by the run my run and 1 other, 3.5 GiB"
