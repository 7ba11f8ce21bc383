"""A command line on a machine with an NVIDIA GPU; without one its tests are skipped."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.run_folder.store import RunStore
from tests.helpers import run_logs

ROOT = Path(__file__).parents[3]
TWICE = ROOT / "tests" / "helpers" / "gpu_shown_twice"
LIMIT_S = 300


@functools.cache
def why_no_gpu() -> str:
    """Why nothing can be trained on a GPU here; empty where it can."""
    if this_platform().cuda_build is None:
        return "PyTorch here has no CUDA"
    with DeviceMonitor() as monitor:
        gpus = [device for device in monitor.devices() if device.kind == "cuda" and not device.hidden_by]
    return "" if gpus else "no NVIDIA GPU here"


class GpuShell:
    """`python -m core …` in a folder of its own, beside a text. `twice`: the first GPU is there a second time."""

    def __init__(self, place: Path, *, twice: bool) -> None:
        self.place = place
        self.runs = place / "Läufe mit Raum"
        ours = [str(TWICE)] * twice + [str(ROOT)]
        inherited = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join([*ours, *filter(None, [inherited])])
        self.environment = {**os.environ, "PYTHONPATH": path, "RANKDECK_HOME": str(self.runs)}
        self.environment.pop("OMP_NUM_THREADS", None)
        text = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60_000))
        (place / "text.txt").write_text(text, encoding="utf-8", newline="\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on in the background."""
        return subprocess.Popen(
            [sys.executable, "-m", "core", *words],
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *words: str, code: int = 0) -> str:
        """A command to its end; its stdout."""
        return self.finish(self.start(*words), code)

    def finish(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Waits for a command; its stdout, after it has ended with `code`."""
        out, error = process.communicate(timeout=LIMIT_S)
        print(error[-8000:], out[-4000:], sep="\n")  # shown if the test fails
        assert process.returncode == code, (error[-4000:], run_logs.sections(self.runs))
        return out

    def train(self, *words: str, code: int = 0) -> tuple[RunStore, str]:
        """A small run to its end, in the mode that was asked for; its folder, and what it printed."""
        before = set(self.runs.glob("*/run.toml"))
        out = self.finish(self.start("train", "--dataset-file", "text.txt", "--strict", *words), code)
        (made,) = set(self.runs.glob("*/run.toml")) - before
        return RunStore.open(made.parent), out


def lines(store: RunStore, event: str) -> list[dict[str, Any]]:
    """A run's metrics lines of one kind."""
    text = store.metrics.read_text(encoding="utf-8")
    return [value for line in text.splitlines() if (value := json.loads(line))["event"] == event]


def _shell(tmp_path: Path, *, twice: bool) -> Iterator[GpuShell]:
    if why := why_no_gpu():
        pytest.skip(why)
    shell = GpuShell(tmp_path, twice=twice)
    yield shell
    for folder in shell.runs.glob("*/host.json"):
        argv = [sys.executable, "-m", "core", "stop", "--now", str(folder.parent)]
        subprocess.run(argv, env=shell.environment, cwd=tmp_path, check=False, capture_output=True, timeout=60)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[GpuShell]:
    """On this machine's GPUs."""
    yield from _shell(tmp_path, twice=False)


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[GpuShell]:
    """On this machine's first GPU, which is there twice: two ranks train on it."""
    yield from _shell(tmp_path, twice=True)
