"""Where one run host ends: fake ranks of 8 machines with 8 each, and of 16 with 16 and 64, against one real host.

pytest -m benchmark -s tests/benchmarks/bench_nodes.py

Each machine is a process whose threads are its ranks, with real connections and the real protocol. They share this
machine's cores with the host, so they have a lower priority than it: in use they are elsewhere. Whatever else runs here
still takes from the host, so the load is printed beside the figures.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from core.client import connect, stop_run
from core.errors import ConnectionRefusedByHostError
from core.launch.meeting import Meeting
from core.launch.nodes.key import make_key, with_token
from core.launch.nodes.seats import FILE, NodeSeats, Seat
from core.machine.platform import free_port
from core.processes.identity import own
from core.protocol.messages import CommitRequest
from core.protocol.rank_context import ENV_MEETING, ENV_RANK
from tests.helpers.host_fixture import FakeRun

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SIZES: Final = ((8, 8), (16, 16), (16, 64))
LOW: Final = ("nice", "-n", "19")
WINDOW_S: Final = 15.0
LIMIT_S: Final = 500.0
# Not 127.0.0.1, so that ranks answer the host's challenge as those of another machine do.
ADDRESS: Final = "127.0.0.2"
# Chunks of 8 samples, 4 in a step: a claim every second step.
BEHAVIOUR: Final[dict[str, Any]] = {"steps": 10**9, "samples": 1_000_000, "batch": 4, "step_s": 2.0}

MACHINE: Final = """
import json, sys, threading
from core.errors import ConnectionRefusedByHostError
from core.protocol.rank_context import RankContext
from tests.helpers.fake_rank import FakeRank
threading.stack_size(256 << 10)
def train(text):
    while True:
        try:
            rank = FakeRank(RankContext.from_env({"RANKDECK_RANK": text}))
            break
        except ConnectionRefusedByHostError:
            pass  # a busy machine: the host did not answer within 5 s
    rank.run()
threads = []
for line in sys.stdin:
    threads.append(threading.Thread(target=train, args=(json.loads(line),)))
    threads[-1].start()
for thread in threads:
    thread.join()
"""


class Machines:
    """Processes that are ranks of several machines, started as a launcher's processes start theirs."""

    def __init__(self, folder: Path, machines: int, each: int) -> None:
        self.meeting = Meeting(folder / "meetings" / "job" / "start-0")
        self.meeting.begin(own(), "torchrun", keep_run=False)
        self._each = each
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        self._log = (folder / "machines.log").open("wb")
        self.processes = [
            subprocess.Popen(
                ["nice", "-n", "19", sys.executable, "-c", MACHINE], stdin=subprocess.PIPE, stderr=self._log, env=env
            )
            for _ in range(machines)
        ]
        self._asked = dict.fromkeys(range(machines * each), 0)
        seats = [Seat(1 + rank // each, rank % each, each, "lo") for rank in self._asked]
        self.meeting.write(FILE, NodeSeats(ADDRESS, free_port(), free_port(), tuple(seats)).to_dict())
        for rank in self._asked:
            self.meeting.write(f"arrived-{rank}.json", {"pid": own().pid, "started": own().started})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """Ends all of it."""
        self._is_over.set()
        self._thread.join()
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self._log.close()

    def _serve(self) -> None:
        """Starts ranks as the host asks for them: there is one process of a launcher for each, so side by side."""
        while not self._is_over.wait(0.05 if 0 in self._asked.values() else 1.0):
            for rank in self._asked:
                asked = self.meeting.read(f"ask-{rank}.json")
                if asked is None or asked["number"] == self._asked[rank]:
                    continue
                self._asked[rank] = asked["number"]
                if "start" in asked:
                    self._start(rank, with_token(asked["start"]["env"], asked["start"]["salt"])[ENV_RANK])
                self.meeting.write(f"rank-{rank}.json", {"number": asked["number"], "pid": own().pid, "left": []})

    def _start(self, rank: int, context: str) -> None:
        stdin = self.processes[rank // self._each].stdin
        assert stdin is not None
        stdin.write(json.dumps(context).encode() + b"\n")
        stdin.flush()


@dataclass
class Figures:
    """What a host did in a window."""

    ranks: int
    start_s: float
    lines_per_s: float
    claims_per_s: float
    cpu_percent: float
    lines_per_cpu_s: float
    memory_mib: float
    answer_s: float
    commit_s: float

    def row(self) -> str:
        return (
            f"| {self.ranks:,} | {self.start_s:.0f} s | {self.lines_per_s:,.0f} | {self.claims_per_s:,.0f} | "
            f"{self.cpu_percent:.0f} % | {self.lines_per_cpu_s:,.0f} | {self.memory_mib:.0f} MiB | "
            f"{self.answer_s:.2f} s | {self.commit_s:.1f} s |"
        )


@pytest.mark.parametrize(("machines", "each"), SIZES)
def test_one_host(machines: int, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = machines * each
    devices = tuple(f"cpu:{number}" for number in range(ranks))
    timeouts = {"start_timeout_s": LIMIT_S, "stop_timeout_s": 300.0, "hang_timeout_s": LIMIT_S}
    run = FakeRun(tmp_path, devices=devices, mode="independent", dataset_chunk_size=8, **timeouts).behave(**BEHAVIOUR)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    make_key()
    crowd = Machines(tmp_path, machines, each)
    monkeypatch.setenv(ENV_MEETING, str(crowd.meeting.folder))
    try:
        began = time.monotonic()
        run.start()
        _wait(lambda: run.store.state().state == "training", run)
        start_s = time.monotonic() - began
        _wait(lambda: _lines(run) > 5 * ranks, run)  # at first it makes the files of each rank's columns
        figures = _measure(run, ranks, start_s)
        with contextlib.suppress(ConnectionRefusedByHostError):
            stop_run(run.store, now=True)
    finally:
        crowd.close()
        run.close()
    print(f"\n{figures.row()} load {os.getloadavg()[0]:.0f}")
    assert figures.lines_per_s > 0 and figures.claims_per_s > 0


def _measure(run: FakeRun, ranks: int, start_s: float) -> Figures:
    host = run.host
    first, cpu, at = _lines(run), _cpu_s(host), time.monotonic()
    time.sleep(WINDOW_S)
    lines, used, took = _lines(run) - first, _cpu_s(host) - cpu, time.monotonic() - at
    claims = sum(1 for line in run.events("step") if line["step"] % 2 == 1 and line["ts"] > time.time() - took) / took
    memory = host.memory_info().rss / (1 << 20)
    answer_s = max(_answer_s(run) for _ in range(10))
    commit_s = _commit(run) if math.isfinite(answer_s) else math.inf
    return Figures(ranks, start_s, lines / took, claims, 100 * used / took, lines / used, memory, answer_s, commit_s)


def _answer_s(run: FakeRun) -> float:
    """How long a client waits until it is welcomed; infinite where the host is too busy to hear of it."""
    asked = time.monotonic()
    try:
        connect(run.store).close()
    except ConnectionRefusedByHostError as error:
        print(f"\n{error}")
        return math.inf
    return time.monotonic() - asked


def _commit(run: FakeRun) -> float:
    """How long a checkpoint takes."""
    before, asked = len(run.checkpoints()), time.monotonic()
    connection = connect(run.store)
    connection.send(CommitRequest())
    _wait(lambda: len(run.checkpoints()) > before, run)
    connection.close()
    return time.monotonic() - asked


def _lines(run: FakeRun) -> int:
    return run.store.metrics.read_bytes().count(b"\n") if run.store.metrics.exists() else 0


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _wait(reached: Any, run: FakeRun) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < deadline, run.log()[-4000:]
        assert run.store.state().is_live, run.log()[-4000:]
        time.sleep(0.05)
