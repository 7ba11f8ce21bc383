"""A command line on a machine with an NVIDIA GPU; without one its tests are skipped."""

from __future__ import annotations

import functools
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.run_folder.store import RunStore
from tests.helpers.command_line import CommandLine
from tests.helpers.hosted_run import curve

TWICE = Path(__file__).parents[2] / "helpers" / "gpu_shown_twice"
TEXT = "text.txt"
MODEL = shlex.split("--seq-len 64 --batch-size 8 --set n_layer=2 --set n_head=4 --set n_embd=64 --set sample_tokens=0")


@functools.cache
def why_no_gpu() -> str:
    """Why nothing can be trained on a GPU here; empty where it can."""
    if this_platform().cuda_build is None:
        return "PyTorch here has no CUDA"
    with DeviceMonitor() as monitor:
        gpus = [device for device in monitor.devices() if device.kind == "cuda" and not device.hidden_by]
    return "" if gpus else "no NVIDIA GPU here"


class GpuShell(CommandLine):
    """A command line on GPUs, beside a text."""

    def train(self, *words: str) -> RunStore:
        """A run to its end, in the mode that was asked for."""
        before = set(self.runs.glob("*/run.toml"))
        self.run("train", "--dataset-file", TEXT, "--strict", *words)
        (made,) = set(self.runs.glob("*/run.toml")) - before
        return RunStore.open(made.parent)

    def bench(self, kind: str, *words: str) -> list[dict[str, Any]]:
        """A benchmark's table, of which every row has been measured."""
        rows: list[dict[str, Any]] = json.loads(self.run("bench", kind, "--dataset-file", TEXT, *words, "--json"))[
            "rows"
        ]
        assert rows and {row["outcome"] for row in rows} == {"measured"}, rows
        return rows

    def at_step(self, step: int) -> RunStore:
        """The only run, once it has made a step."""
        store = self.only_run()
        deadline = time.monotonic() + 120
        while max(curve(store), default=0) < step:
            assert time.monotonic() < deadline, f"step {step} was not made"
            time.sleep(0.1)
        return store

    def ranks(self) -> list[psutil.Process]:
        """The processes that train, by rank."""
        found = {}
        for process in psutil.process_iter(["cmdline"]):
            if "workers.programs.rank_main" in (process.info["cmdline"] or []):
                environment = process.environ()
                if environment.get("RANKDECK_HOME") == str(self.runs):
                    found[int(environment["RANK"])] = process
        return [process for _, process in sorted(found.items())]


def _shell(place: Path, *ahead: Path) -> Iterator[GpuShell]:
    if why := why_no_gpu():
        pytest.skip(why)
    shell = GpuShell(place, ahead)
    shell.environment.pop("OMP_NUM_THREADS", None)
    shell.write_text(TEXT, lines=60_000)
    yield shell
    shell.end_runs()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[GpuShell]:
    """On this machine's GPUs."""
    yield from _shell(tmp_path)


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[GpuShell]:
    """On this machine's first GPU, which is listed twice (`tests.helpers.gpu_shown_twice`): two ranks train on it."""
    yield from _shell(tmp_path, TWICE)
