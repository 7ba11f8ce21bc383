"""What the window costs while two CPU ranks train: its share of a core, and what the ranks lose by it.

pytest -m benchmark -s tests/benchmarks/bench_beside.py

The ranks train throughout; the window takes turns with nothing: it is suspended for every second slice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import psutil
import pytest

from core.processes.program_environment import program_environment

pytestmark = pytest.mark.benchmark
SLICES: Final = 8
SLICE_S: Final = 6.0
# After a pause the window first reads what was written meanwhile; that belongs to no slice.
SETTLE_S: Final = 2.0
START_LIMIT_S: Final = 120.0
SETTINGS: Final = "--devices cpu:0,cpu:1 --mode ddp --steps 1000000 --batch-size 8 --seq-len 64"
MODEL: Final = "--set n_layer=2 --set n_head=2 --set n_embd=64"

WINDOW: Final = """
import gc
gc.disable()  # as app.__main__ does
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.threads.garbage import GarbageCollection
from app.main import Rankdeck
from tests.helpers.settings_file import settings_in
from app.style.theme import Theme
app = QApplication([])
Theme(app)
place = Path(sys.argv[1])
rankdeck = Rankdeck(settings_in(place / "settings.ini"), place / "runs")
rankdeck.settings.set_text("last_run", sys.argv[2])
rankdeck.deferred.due.connect(GarbageCollection(rankdeck).start)
rankdeck.open()
app.exec()
"""


def steps_until_now(run_dir: Path) -> int:
    step = 0
    with (run_dir / "metrics.jsonl").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith('{"ts"') and '"event":"step"' in line and '"rank":0' in line:
                step = int(json.loads(line)["step"])
    return step


def rankdeck(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "core", *arguments], capture_output=True, text=True, check=True, timeout=START_LIMIT_S
    )
    return done.stdout.strip()


@contextmanager
def training(place: Path) -> Iterator[Path]:
    text = place / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 4000, encoding="utf-8")
    runs = place / "runs"
    begin = ("train", "--recipe", "minigpt", "--dataset-file", str(text), *SETTINGS.split(), *MODEL.split())
    name = rankdeck(*begin, "--detach", "--runs-dir", str(runs)).splitlines()[-1]
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while not (runs / name / "metrics.jsonl").exists() or steps_until_now(runs / name) < 50:
            assert time.monotonic() < deadline, "the run did not begin to train"
            time.sleep(0.2)
        yield runs / name
    finally:
        rankdeck("stop", str(runs / name), "--now")


@contextmanager
def window(place: Path, run_dir: Path) -> Iterator[psutil.Process]:
    environment = program_environment(os.environ, {"QT_QPA_PLATFORM": "offscreen"})
    with subprocess.Popen([sys.executable, "-c", WINDOW, str(place), str(run_dir)], env=environment) as process:
        try:
            time.sleep(5.0)  # it is open, and has read the run
            assert process.poll() is None
            yield psutil.Process(process.pid)
        finally:
            process.kill()


def test_the_window_beside_training(tmp_path: Path) -> None:
    with training(tmp_path) as run_dir, window(tmp_path, run_dir) as process:
        alone: list[float] = []
        beside: list[float] = []
        shares: list[float] = []
        for number in range(SLICES):
            (process.suspend if number % 2 else process.resume)()
            time.sleep(SETTLE_S)
            began, steps, used = time.monotonic(), steps_until_now(run_dir), sum(process.cpu_times()[:2])
            time.sleep(SLICE_S)
            took = time.monotonic() - began
            rate = (steps_until_now(run_dir) - steps) / took
            (alone if number % 2 else beside).append(rate)
            if not number % 2:
                shares.append((sum(process.cpu_times()[:2]) - used) / took)
        process.resume()
    print(
        f"\nbeside two CPU ranks the window takes {median(shares):.1%} of a core ({min(shares):.1%} to "
        f"{max(shares):.1%}); they train at {median(beside) / median(alone):.3f} of their speed without it "
        f"({median(beside):.0f} and {median(alone):.0f} steps/s)"
    )
    assert min(alone) > 0 and min(beside) > 0
