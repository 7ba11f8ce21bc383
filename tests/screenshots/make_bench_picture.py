"""Takes the picture of a benchmark: `python -m tests.screenshots.make_bench_picture [FOLDER]`.

The page is the window's own; the figures are made up, since a picture needs no eight devices.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.bench.bench_page import BenchPage
from app.bench.bench_text import bench_news, what_is_measured
from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import resolve_on
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.measure.bench.contenders import Kind, find_contenders
from core.measure.bench.rows import Bench, Measured
from core.measure.trial import TrialResult
from core.recipes.catalog import get_recipe
from tests.screenshots.make_screenshots import FOLDER, Studio

STEPS_S = {
    1: (0.0402, 0.0398, 0.0411, 0.0400, 0.0404),
    2: (0.0421, 0.0416, 0.0433, 0.0424, 0.0419),
    4: (0.0438, 0.0447, 0.0452, 0.0440, 0.0461),
    8: (0.0479, 0.0472, 0.0490, 0.0481, 0.0468),
}


def made_up() -> Bench:
    """Weak scaling on up to eight cards."""
    cards = [Device(f"GPU-{number}", "cuda", number, "RTX 4090", 24 << 30) for number in range(8)]
    config = RunConfig(batch_size=16, mode=Mode.DDP)
    run = resolve_on(config, get_recipe("minigpt"), cards, Platform("linux", "2.13.0+cu128", "12.8", 16))
    measured = [
        Measured(one, tuple(TrialResult("measured", (step_s,), "nccl") for step_s in STEPS_S[one.devices]))
        for one in find_contenders(Kind.WEAK, run)
    ]
    return Bench(Kind.WEAK, run, 2, tuple(measured), 5, 2.0)


def main(folder: Path, *, is_dark: bool = False) -> int:
    """Takes it."""
    with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
        os.environ["RANKDECK_HOME"] = f"{home}/runs"
        studio = Studio(QApplication([]), Path(home), folder)
        studio.theme.set_dark(is_dark)
        studio.window.resize(1320, 760)
        studio.rankdeck.open()
        bench = made_up()
        page = BenchPage()
        page.show_about(what_is_measured(bench.kind, bench.run), "")
        page.show_started()
        page.show_news(bench_news(bench, is_over=True))
        page.show_ended(has_folder=True)
        studio.rest(2.0)
        studio.window.show_page(page)
        studio.picture("bench")
        studio.window.close_now()
    return 0


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "dark"]
    sys.exit(main(Path(given[0]).absolute() if given else FOLDER, is_dark="dark" in sys.argv))
