"""Takes a picture of every alert: `python -m tests.screenshots.make_alert_pictures FOLDER`.

Faults are made for real: the night of `test_night` (memory, a poisoned sample, a rank that stands still, a drive that
fills up), a rollback, memory that runs out where the step can be repeated, a hang that restarts the run, a device that
loads slowly, and a run that no longer improves. Only a card that spills (Windows) is not among them. The window shows
each run's alerts in light and dark at 100 and at 150 %. It takes five minutes; Linux, as root (it mounts a drive).
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from PySide6.QtWidgets import QApplication

from tests.helpers.forking import own_servers
from tests.helpers.hosted_run import host, lines, make_run, write_text
from tests.helpers.small_drive import small_drive
from tests.screenshots.make_screenshots import Studio

KEPT = "runs"


def make_runs(folder: Path) -> None:
    """Runs with every alert, in `folder`."""
    from tests.training.end2end.test_hangs import make_hanging
    from tests.training.end2end.test_night import disturb, make_night
    from tests.training.end2end.test_stragglers import make_unequal, stopped_after
    from tests.training.workers.training.test_memory_guard import short
    from tests.training.workers.training.test_non_finite import diverging

    own_servers(folder)
    with small_drive(folder / "small drive", 36) as drive:
        night = make_night(drive, folder)
        disturbing = threading.Thread(target=disturb, args=(night, drive), daemon=True)
        disturbing.start()
        host(night, timeout_s=300)
        disturbing.join()
        shutil.copytree(drive / "run", folder / KEPT / "night")
    (folder / "diverged").mkdir()
    diverged = diverging(folder / "diverged", "ddp", 2, {"bad_from": 23, "bad_rank": 1}, non_finite="rollback")
    host(diverged)
    shutil.copytree(diverged.dir, folder / KEPT / "rollback")
    host(short(folder / KEPT, "ddp", 2, "memory"))
    host(make_hanging(folder / KEPT / "hang", "ddp", "collective", hang_policy="restart"))
    slow = make_unequal(folder / KEPT / "slow", "ddp", {"load_ms": 60})
    stopped_after(slow, lambda: bool(lines(slow, "alert")))
    rules = {"early_stop_patience": 2, "early_stop_min_delta": 5.0, "eval_every": 8, "epochs": 20, "lr": 0.3}
    host(make_run(folder / KEPT / "early stop", write_text(folder / "text.txt"), "ddp", 2, **rules))


def take(studio: Studio, theme: str) -> None:
    """The alerts of each run."""
    studio.rankdeck.open()
    for run in sorted(file.parent for file in studio.rankdeck.runs_dir.glob("*/run.toml")):
        studio.rankdeck.showing.show(run)
        studio.wait(lambda run=run: studio.rankdeck.showing.run_dir == run and studio.rankdeck.data.state is not None)
        studio.window.tabs.setCurrentWidget(studio.window.tabs.alerts)
        studio.rest(1.5)
        studio.picture(f"alerts {run.name} {theme}")
    studio.window.close_now()


def main(folder: Path) -> int:
    """Makes the runs once; each theme and size has a window of its own."""
    theme = os.environ.get("RANKDECK_PICTURES")
    folder.mkdir(parents=True, exist_ok=True)
    if theme is None:
        with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
            make_runs(Path(home))
            for theme, factor in itertools.product(("light", "dark"), ("1", "1.5")):
                env = {**os.environ, "RANKDECK_PICTURES": theme, "RANKDECK_HOME": home, "QT_SCALE_FACTOR": factor}
                subprocess.run([sys.executable, "-m", __spec__.name, str(folder)], env=env, check=True)
        return 0
    studio = Studio(QApplication([]), Path(os.environ["RANKDECK_HOME"]), folder)
    studio.theme.set_dark(theme == "dark")
    take(studio, theme if os.environ["QT_SCALE_FACTOR"] == "1" else f"{theme}-150")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
