"""Pictures of charts, drawn by the window's plotting library in a process of `app`."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from core.bench.charts import BenchChart
from core.errors import full_stop
from core.files.atomic import copy_atomic
from core.processes import ProcessTree
from core.processes.ask import read_answer
from core.processes.program_environment import program_environment

PROGRAM: Final = "app.views.bench.draw_charts"
FORMATS: Final = ("png", "svg")
LIMIT_S: Final = 120.0
_POLL_S: Final = 0.05


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
        deadline = time.monotonic() + LIMIT_S
        with ProcessTree() as tree:
            argv = (sys.executable, "-m", PROGRAM, str(request), str(drawn))
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
            for kind in FORMATS:
                copy_atomic(drawn / f"{chart.name}.{kind}", folder / f"{chart.name}.{kind}")
    return ""
