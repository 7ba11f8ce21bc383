"""From launching a run to its first optimizer step, against plain subprocesses that make the same step by hand.

    python -m tests.benchmarks.run_all start

All contenders take turns: a turn starts each of them once, so what else the machine does falls on all alike. Wall time
ends with the last rank's first step; processor time is that of all processes, from the start to the end of a run of one
step, by the kernel's own count. `RANKDECK_BENCH_TREES` names other checkouts of Rankdeck to compare with,
`RANKDECK_BENCH_TURNS` how many turns there are.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.benchmarks.loops.common import Job
from tests.helpers.hosted_run import TINY, write_text

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the time of all descendants"),
]
ROOT: Final = Path(__file__).resolve().parents[2]
TREES: Final = [ROOT, *map(Path, filter(None, os.environ.get("RANKDECK_BENCH_TREES", "").split(os.pathsep)))]
TURNS: Final = int(os.environ.get("RANKDECK_BENCH_TURNS", "7"))
# Moments of a start, and how the host's log says them.
PHASES: Final = {
    "host at work": "planning",
    "ranks started": "spawning",
    "torch begins": r"(?:rank|CPU) \d+: importing torch",
    "data": r"(?:rank|CPU) \d+: preparing data",
    "ready": r"(?:rank|CPU) \d+: ready",
}
BATCH: Final = 4
LENGTH: Final = 16
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass
class Start:
    """What the turns of one contender took, in seconds."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    phases: dict[str, list[float]] = field(default_factory=dict)


@pytest.mark.parametrize("world", [1, 2])
def test_launch_to_first_step(world: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    contenders: dict[str, Callable[[Path], Start]] = {"by hand": lambda folder: _by_hand(folder, world, text)}
    for tree in TREES:
        name = "Rankdeck" if tree == ROOT else f"Rankdeck in {tree.name}"
        contenders[name] = lambda folder, tree=tree: _rankdeck(folder, tree, world, text)  # type: ignore[misc]
    took = {name: Start() for name in contenders}
    for turn in range(-1, TURNS):  # the first one fills the disk's and the tokens' caches and does not count
        for number, (name, start) in enumerate(contenders.items()):
            folder = tmp_path / f"{turn + 1}-{number}"
            folder.mkdir()
            one = start(folder)
            if turn >= 0:
                took[name].wall += one.wall
                took[name].processor += one.processor
                for phase, at in one.phases.items():
                    took[name].phases.setdefault(phase, []).extend(at)
    print(f"launch to first step, {world} CPU rank(s), {TURNS} turns, load {psutil.getloadavg()[0]:.0f}:")
    for name, of in took.items():
        print(f"  {name:24} wall {_spread(of.wall)}, processor {_spread(of.processor)}")
        if of.phases:
            times = (f"{statistics.median(at):.2f} s {phase}" for phase, at in of.phases.items())
            print(f"  {'':24} {', '.join(times)}")


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):5.2f} s ({min(values):.2f} to {max(values):.2f})"


def _rankdeck(folder: Path, tree: Path, world: int, text: Path) -> Start:
    settings = {"sample_tokens": 0, **{name: TINY[name] for name in ("n_layer", "n_head", "n_embd")}}
    command = [sys.executable, "-m", "core", "train", "--detach", "--run-dir", str(folder / "run")]
    command += ["--devices", f"cpu:{world}", "--mode", "ddp" if world > 1 else "single", "--steps", "1"]
    command += ["--batch-size", str(BATCH), "--seq-len", str(LENGTH), "--dataset-file", str(text)]
    command += ["--gradient-exchange", "plain", *(f"--set={name}={value}" for name, value in settings.items())]
    log, began = folder / "run" / "logs" / "host.log", time.time()
    start = _measured([command], tree, folder, lambda: _first_steps(log, world))
    for phase, ending in PHASES.items():
        start.phases[phase] = [at - began for at in _logged(log, rf"phase: {ending}")[:1]]
    return start


def _first_steps(log: Path, world: int) -> float:
    found = _logged(log, r"rank \d+ has made step 1")
    assert len(found) == world, found
    return max(found)


def _logged(log: Path, line: str) -> list[float]:
    """When a host logged lines that end like this."""
    text = log.read_text(encoding="utf-8")
    found = re.findall(rf"^(\S+ \S+) INFO .*: {line}$", text, re.MULTILINE)
    return [datetime.fromisoformat(moment).timestamp() for moment in found]


def _by_hand(folder: Path, world: int, text: Path) -> Start:
    meeting = (folder / "meeting").as_uri()
    jobs = [Job(rank, world, str(text), meeting, 1, BATCH, LENGTH, synchronised=world > 1) for rank in range(world)]
    commands = [
        [sys.executable, "-m", "tests.benchmarks.loops.by_hand", json.dumps(asdict(job))] for job in jobs
    ]  # its model is larger, which is a few hundredths of a second of one step
    return _measured(commands, ROOT, folder, lambda: _last_line(folder, world))


def _last_line(folder: Path, world: int) -> float:
    ended = [re.findall(r"^\d+\.\d+$", (folder / f"{rank}.out").read_text(), re.MULTILINE) for rank in range(world)]
    assert all(len(times) == 1 for times in ended), ended
    return max(float(times[0]) for times in ended)


def _measured(commands: Sequence[list[str]], tree: Path, folder: Path, first_step: Callable[[], float]) -> Start:
    path = os.pathsep.join([str(tree), str(tree / "workers" / "sdk")])  # the loop by hand borrows a recipe's model
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RANKDECK_HOME": str(folder), "PYTHONPATH": path}
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0  # hosts become children of this process
    try:
        before, began = _of_children(), time.time()
        started: list[subprocess.Popen[bytes]] = []
        for number, command in enumerate(commands):
            with (folder / f"{number}.out").open("wb") as output:
                started.append(subprocess.Popen(command, cwd=tree, env=environment, stdout=output, stderr=output))
        codes = _reap()
        for process in started:
            process.wait()  # finds that it was reaped
        took = _of_children() - before
    finally:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert not any(codes), (folder / "0.out").read_text()
    return Start([first_step() - began], [took])


def _reap() -> list[int]:
    codes: list[int] = []
    while True:
        try:
            codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
        except ChildProcessError:
            return codes


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
