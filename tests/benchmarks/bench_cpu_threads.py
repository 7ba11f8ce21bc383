"""How OpenMP's threads should wait on CPU ranks: steps a second by how long they spin, idle and beside other programs.

    python -m tests.benchmarks.run_all cpu_threads

All settings of a row take turns (`taking_turns`), so what else the machine does falls on all alike. The figures of
docs/decisions/0026 come from here. `RANKDECK_BENCH_TURNS` says how many slices each gets; `RANKDECK_BENCH_IOMP` names
Intel's library (``libiomp5.so`` of the package intel-openmp), which then takes the place of GNU's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.benchmarks.bench_peers import loop
from tests.benchmarks.loops.common import Job
from tests.benchmarks.taking_turns import SLICE_S, Contender, Timed, median_ratio, rate, ratio, take_turns
from tests.helpers.hosted_run import write_text

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="the settings are those of GNU's and Intel's library on Linux"),
]
TURNS: Final = int(os.environ.get("RANKDECK_BENCH_TURNS", "10"))
IOMP: Final = os.environ.get("RANKDECK_BENCH_IOMP", "")
BATCH: Final = 2  # small steps: many end in a slice, also beside other programs
BUSY_SLICE_S: Final = 5.0
UNSET: Final = "unset"
GNU: Final = {
    UNSET: {},
    "PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
}
INTEL: Final = {
    UNSET: {},
    "PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    "KMP_BLOCKTIME=1": {"KMP_BLOCKTIME": "1"},
}
SETTINGS: Final = INTEL if IOMP else GNU
_NAMES: Final = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_BUSY: Final = """
import sys, time
from pathlib import Path
end = time.monotonic() + 1500
while time.monotonic() < end:
    if Path(sys.argv[1]).exists():
        for _ in range(1_000):
            sum(range(10_000))
    else:
        time.sleep(0.2)
"""


@contextmanager
def variables(settings: dict[str, str]) -> Iterator[None]:
    """What is started in here has these, and none of the others that are compared."""
    wanted = {**settings, **({"LD_PRELOAD": IOMP} if IOMP else {})}
    kept = {name: os.environ.pop(name, None) for name in (*_NAMES, *wanted)}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def busy(programs: int, signal: Path) -> Iterator[None]:
    """So many other programs compute, from when the file `signal` exists: some settings would not even start beside."""
    started = [subprocess.Popen([sys.executable, "-c", _BUSY, str(signal)]) for _ in range(programs)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("others", [0, 3], ids=["idle", "busy"])
@pytest.mark.parametrize(("world", "threads"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_waiting_threads(world: int, threads: int, others: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 2_000_000)
    programs = others * (psutil.cpu_count() or 1)

    def start(name: str) -> Callable[[], Contender]:
        def started() -> Contender:
            with variables(SETTINGS[name]):
                job = Job(0, world, str(text), "", 1_000_000, BATCH, 128, synchronised=world > 1)
                contender = loop("by_hand", job, tmp_path / name.replace("=", " "), threads, name)
            if name == list(SETTINGS)[-1]:
                (tmp_path / "all are there").touch()
            return contender

        return started

    with busy(programs, tmp_path / "all are there"):
        timed = take_turns([start(name) for name in SETTINGS], TURNS, BUSY_SLICE_S if others else SLICE_S)
        load = psutil.getloadavg()[0]
    library = "libiomp5" if IOMP else "libgomp"
    print(f"{library}, {world} rank(s) x {threads} thread(s), {programs} other programs, load {load:.0f}:")
    assert any(rate(of) > 0 for of in timed.values()), "no setting made a step"
    for name, of in timed.items():
        print(f"  {name:22} {rate(of):7.2f} steps/s  {_beside(of, timed[UNSET])}")


def _beside(of: Sequence[Timed], unset: Sequence[Timed]) -> str:
    """How often as fast as without any setting; spinning threads beside other programs may not end a single step."""
    if not rate(unset):
        return "(no step when unset)"
    pooled, low, high = ratio(of, unset)
    return f"{pooled:6.2f} x unset ({low:.2f} to {high:.2f}; median of turns {median_ratio(of, unset):.2f})"
