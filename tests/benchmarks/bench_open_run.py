"""From the start of a process to the first picture of a long run, plots only (the window's frame comes on top).

pytest -m benchmark -s tests/benchmarks/bench_open_run.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.helpers.synthetic_run import Shape, write_columns

pytestmark = pytest.mark.benchmark
ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5

OPEN = """
import json, sys, time
from pathlib import Path
marks = {}
from PySide6.QtWidgets import QApplication
import psutil
marks["Qt"] = time.time()
from app.models.run_data import RunData
from app.views.plots.evidence_panel import EvidencePanel
marks["imports"] = time.time()
app = QApplication([])
data = RunData()
panel = EvidencePanel(data)
panel.resize(1100, 760)
data.open(Path(sys.argv[1]))
panel.show()
def drawn():
    if panel.loss.chart.scale is not None and "picture" not in marks:
        marks["picture"] = time.time()
    if "picture" in marks and data.is_caught_up:
        app.quit()
data.changed.connect(lambda change: drawn())
panel.loss.chart.redrawn.connect(drawn)
app.exec()
marks["MiB"] = psutil.Process().memory_info().rss / 2**20
print(json.dumps(marks))
data.close()
"""


def open_once(run_dir: Path) -> dict[str, Any]:
    began = time.time()
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(run_dir)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    marks = json.loads(done.stdout)
    return {name: value if name == "MiB" else value - began for name, value in marks.items()}


@pytest.mark.parametrize("steps", [1000, 1_000_000, 10_000_000])
def test_first_picture(tmp_path: Path, steps: int) -> None:
    store = write_columns(tmp_path / "run", Shape(steps=steps, ranks=2, eval_every=max(10, steps // 1000)))
    rounds = [open_once(store.dir) for _ in range(ROUNDS)]
    parts = {name: median(marks[name] for marks in rounds) for name in rounds[0]}
    pictures = [marks["picture"] for marks in rounds]
    words = ", ".join(f"{name} {parts[name]:.2f} s" for name in ("Qt", "imports", "picture"))
    print(f"\n{steps:,} steps, 2 ranks: {words} after the process began; {parts['MiB']:.0f} MiB", end="")
    print(f"; pictures of {ROUNDS} rounds: {min(pictures):.2f} to {max(pictures):.2f} s")
