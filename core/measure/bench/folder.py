"""Folder of a benchmark's results: table, environment and pictures; each file whole or not there."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

import core
from core.errors import RankdeckError, UsageError, full_stop
from core.files.atomic import copy_atomic, explained, write_atomic
from core.launch.resolved import ResolvedRun
from core.machine.devices.cpu import processor_name
from core.machine.packages import recorded_versions
from core.machine.platform import physical_cores
from core.measure.bench.charts import BenchChart, charts_of
from core.measure.bench.contenders import Kind, threads_of_device
from core.measure.bench.rows import Bench
from core.measure.bench.table import table_of
from core.processes import ProcessTree
from core.processes.ask import read_answer
from core.processes.program_environment import program_environment

RESULTS: Final = "results.csv"
ENVIRONMENT: Final = "environment.json"
FORMAT: Final = "rankdeck-bench-environment"
DRAW_PROGRAM: Final = "app.bench.draw_charts"
PICTURES: Final = ("png", "svg")
DRAW_LIMIT_S: Final = 120.0
_LOAD_S: Final = 1.0
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class BenchFolder:
    """A folder that takes results.

    Attributes:
        path: Where.
        environment: What was measured on what.
    """

    path: Path
    environment: Mapping[str, Any]

    @classmethod
    def make(cls, path: Path, environment: Mapping[str, Any]) -> BenchFolder:
        """Makes the folder, and writes the first file: what cannot be written is known before anything is measured.

        Raises:
            UsageError: It holds results already.
            RankdeckError: It cannot be made or written: no permission, disk full, a file in its place.
        """
        if (path / RESULTS).exists():
            raise UsageError(
                f"{path} holds results already.", "Choose another folder.", title="Results are not replaced"
            )
        with explained(f"{path} could not be made"):
            path.mkdir(parents=True, exist_ok=True)
        write_atomic(path / ENVIRONMENT, json.dumps(environment, indent=2, ensure_ascii=False) + "\n")
        return cls(path, environment)

    def keep(self, bench: Bench) -> None:
        """Writes the table of what was measured so far, which a power cut would take; `write` says what goes wrong."""
        if bench.has_figures:
            with contextlib.suppress(RankdeckError):
                write_atomic(self.path / RESULTS, table_of(bench).as_csv())

    def write(self, bench: Bench, cancelled: Callable[[], bool] = lambda: False) -> str:
        """Writes the table and the pictures.

        Args:
            bench: What was measured.
            cancelled: Asked now and then while pictures are drawn; True ends that.

        Returns:
            Why there are no pictures, as a sentence; empty: there are.

        Raises:
            RankdeckError: A file cannot be written.
        """
        write_atomic(self.path / RESULTS, table_of(bench).as_csv())
        return draw_pictures(charts_of(bench), self.path, cancelled)


def draw_pictures(charts: Sequence[BenchChart], folder: Path, cancelled: Callable[[], bool] = lambda: False) -> str:
    """Draws PNG and SVG files into a folder. Blocks.

    Args:
        charts: What is drawn.
        folder: Where; it must exist.
        cancelled: Asked now and then; True ends the drawing.

    Returns:
        Why there are no pictures, as a sentence; empty: there are.

    Raises:
        RankdeckError: A file cannot be written.
    """
    if not charts:
        return "nothing was measured."
    with tempfile.TemporaryDirectory(prefix="rankdeck-charts-", ignore_cleanup_errors=True) as name:
        drawn = Path(name)
        request = drawn / "charts.json"
        request.write_text(json.dumps([dataclasses.asdict(chart) for chart in charts]), encoding="utf-8")
        # Elsewhere Qt's own platform draws without showing anything; under Linux it needs a display.
        env = {"QT_QPA_PLATFORM": "offscreen"} if sys.platform == "linux" else {}
        deadline = time.monotonic() + DRAW_LIMIT_S
        with ProcessTree() as tree:
            argv = (sys.executable, "-m", DRAW_PROGRAM, str(request), str(drawn))
            child = tree.spawn(argv, program_environment(os.environ, env), drawn, drawn / "output.log")
            while child.poll() is None and time.monotonic() < deadline:
                if cancelled():
                    return "drawing them was stopped."
                time.sleep(_POLL_S)
            answer = read_answer(child)
        if answer.code != 0:
            cause = answer.values.get("cause") if answer.values else None
            return full_stop(str(cause or f"the process that draws them {answer.failure}"))
        for chart in charts:
            for kind in PICTURES:
                copy_atomic(drawn / f"{chart.name}.{kind}", folder / f"{chart.name}.{kind}")
    return ""


def busy_share() -> float:
    """Share of the processor that programs keep busy, watched for a second."""
    return float(psutil.cpu_percent(interval=_LOAD_S)) / 100


def describe(kind: Kind, run: ResolvedRun, counts: list[int], busy_before: float) -> dict[str, Any]:
    """What was measured on what.

    Args:
        kind: The benchmark.
        run: On the most devices.
        counts: Numbers of devices.
        busy_before: `busy_share` before anything was started.
    """
    machine = run.platform
    config = run.config
    return {
        "format": FORMAT,
        "version": 1,
        "written": time.strftime("%Y-%m-%d"),
        "kind": kind.value,
        "recipe": run.recipe.name,
        "mode": run.mode.value,
        "engine": run.choice.engine or None,
        "backend": run.backend or None,
        "precision": config.precision,
        "seq_len": config.seq_len,
        "options": {name: value for name, value in sorted(config.options.items()) if not isinstance(value, str)},
        "counts": counts,
        "threads_per_device": threads_of_device(run, counts),
        "devices": [{"kind": d.kind, "name": d.name, "memory_bytes": d.memory_bytes} for d in run.devices],
        "rankdeck": core.__version__,
        "python": platform.python_version(),
        "torch": machine.torch_version,
        "torch_cuda": machine.cuda_build,
        **({} if machine.rocm_build is None else {"torch_rocm": machine.rocm_build}),
        "packages": recorded_versions(),
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": processor_name(),
        "cores": physical_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "busy_before": round(busy_before, 3),
        "platform": sys.platform,
    }
