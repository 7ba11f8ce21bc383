"""Takes the pictures of the window that the description shows: `python -m tests.screenshots.make_screenshots [FOLDER]`.

With `modes` after the folder only the two of New run's modes are taken.

Every picture is of the real window with a real run (two CPU devices, the Python library's own text), so it takes
about two minutes. Pictures go to `resources/screenshots/` unless a folder is given. For the 150 % picture the
script starts itself again with `QT_SCALE_FACTOR=1.5`, because Qt reads that at its start.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import psutil
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from app.form.field_row import FieldRow
from app.main import Rankdeck
from app.style.theme import Theme
from app.threads.garbage import GarbageCollection
from app.window.close_question import CloseQuestion
from core import client
from core.errors import RankdeckError
from core.protocol.rank_context import ENV_RANK, RankContext
from core.run_folder.store import RunStore
from tests.helpers.nvml_sim import SIMULATOR, with_gpus
from tests.helpers.settings_file import settings_in

FOLDER = Path(__file__).resolve().parents[2] / "resources" / "screenshots"
STEPS = 220
PICTURE_AT = 120
LIMIT_S = 180.0
# A start that fails is tried once more before the run falls back.
SAME_MODE_ATTEMPTS = frozenset((1, 2))


class Studio:
    """A window on a folder of runs of its own, and a way to wait in it."""

    def __init__(self, application: QApplication, home: Path, folder: Path) -> None:
        self.application = application
        self.theme = Theme(application)
        self.folder = folder
        self.rankdeck = Rankdeck(settings_in(home / "settings.ini"), home / "runs")
        gc.disable()
        GarbageCollection(self.rankdeck).start()
        self.window = self.rankdeck.window
        self.window.resize(1320, 840)

    def wait(self, until: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        """Lets the window live until something is so."""
        deadline = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > deadline:
                raise TimeoutError("the window did not get there")
            self.application.processEvents()
            time.sleep(0.01)

    def rest(self, seconds: float) -> None:
        """Lets the window live for a while."""
        end = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() > end)

    def picture(self, name: str, widget: QWidget | None = None) -> None:
        """Saves the window (with a dialog over it, if there is one)."""
        self.rest(0.3)
        shot = self.window.grab()
        if widget is not None:
            painter = QPainter(shot)
            left, top = (self.window.width() - widget.width()) // 2, (self.window.height() - widget.height()) // 2
            painter.drawPixmap(left, top, widget.grab())
            painter.setPen(widget.palette().mid().color())
            painter.drawRect(left - 1, top - 1, widget.width() + 1, widget.height() + 1)
            painter.end()
        few_colours(shot.toImage()).save(str(self.folder / f"{name}.png"))

    def step(self) -> int:
        """The step that the shown run has reached."""
        newest = self.rankdeck.data.series.clock().last("step")
        return 0 if newest is None else int(newest)

    def state(self) -> str:
        """The shown run's state."""
        state = self.rankdeck.data.state
        return state.state if state is not None else "idle"


def few_colours(image: QImage) -> QImage:
    """`image` in its 256 commonest colours: enough for a window, and a third of the size."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(plain.constBits(), np.uint32)
    colours, counts = np.unique(pixels, return_counts=True)
    table = [int(colour) for colour in colours[np.argsort(counts)[::-1][:256]]]
    return plain.convertToFormat(QImage.Format.Format_Indexed8, table, Qt.ImageConversionFlag.ThresholdDither)


def all_pictures(studio: Studio) -> None:
    """First window, New run, training (light and dark), closing, stopped, resuming, fallback, failed, error."""
    window, actions = studio.window, studio.window.actions_
    studio.rankdeck.open()
    studio.wait(lambda: actions.start.isEnabled() and "epoch" in window.new_run.summary.facts.full_text)
    studio.rest(2.5)
    studio.picture("idle-light")
    actions.new_run.setChecked(True)
    studio.picture("new-run-light")
    set_field(studio, "steps", str(STEPS))
    set_field(studio, "eval_every", "40")
    set_field(studio, "checkpoint_every_steps", "50")
    window.new_run.form.more.setChecked(False)
    studio.wait(actions.start.isEnabled)
    actions.start.trigger()
    studio.wait(lambda: studio.step() >= PICTURE_AT)
    studio.picture("training-light")
    window.tabs.setCurrentWidget(window.tabs.ledger)
    studio.theme.set_dark(True)
    studio.picture("training-dark")
    studio.theme.set_dark(False)
    window.close()
    question = window.findChild(CloseQuestion)
    assert isinstance(question, CloseQuestion)
    studio.picture("closing", question)
    question.cancel.click()
    actions.stop.trigger()
    studio.wait(lambda: studio.state() == "stopped")
    runs = studio.rankdeck.runs.model
    studio.wait(lambda: all(entry.word == "stopped" for entry in runs.entries()))
    studio.wait(lambda: getattr(studio.rankdeck.ledger.snapshot, "checkpoint", None) is not None)
    studio.picture("stopped")
    actions.resume.trigger()
    dialog = studio.rankdeck.resuming.dialog
    assert dialog is not None
    studio.wait(dialog.go.isEnabled)
    studio.picture("resuming", dialog)
    dialog.reject()
    studio.rest(0.2)
    pictures_of_modes(studio)
    window.new_run.mode.radios["ddp"].click()
    fallback_picture(studio)
    failed_run(studio)
    studio.picture("failed-light")
    actions.new_run.setChecked(True)
    window.new_run.data.set_path("/data/not there.txt")
    window.new_run.data.edited.emit()
    set_field(studio, "lr", "fast")
    window.tabs.setCurrentWidget(window.tabs.alerts)
    studio.rest(2.0)
    studio.picture("error")
    window.close_now()


def pictures_of_modes(studio: Studio) -> None:
    """ZeRO's third stage; a run is shown, stopped."""
    mode = studio.window.new_run.mode
    studio.window.actions_.new_run.setChecked(True)
    studio.window.tabs.setCurrentWidget(studio.window.tabs.config)
    mode.radios["zero"].click()
    choose(mode.zero.rows["zero_stage"], "3")
    studio.picture("zero")


def choose(row: FieldRow, value: str) -> None:
    """Picks an entry of a list."""
    assert isinstance(row.editor, QComboBox)
    row.editor.setCurrentIndex(row.editor.findData(value))


def only_modes(studio: Studio) -> None:
    """A short run, then the pictures of the modes."""
    window, actions = studio.window, studio.window.actions_
    studio.rankdeck.open()
    studio.wait(lambda: actions.start.isEnabled() and "epoch" in window.new_run.summary.facts.full_text)
    set_field(studio, "steps", "120")
    set_field(studio, "eval_every", "40")
    window.new_run.form.more.setChecked(False)
    studio.wait(actions.start.isEnabled)
    actions.start.trigger()
    studio.wait(lambda: studio.state() == "finished")
    studio.wait(lambda: all(entry.word == "finished" for entry in studio.rankdeck.runs.model.entries()))
    pictures_of_modes(studio)
    window.close_now()


def fallback_picture(studio: Studio) -> None:
    """A run whose second rank is killed at each start in DDP, so that it trains independently on both devices."""
    actions, data = studio.window.actions_, studio.rankdeck.data
    before = studio.rankdeck.showing.run_dir
    studio.wait(actions.start.isEnabled)
    actions.start.trigger()
    studio.wait(lambda: studio.rankdeck.showing.run_dir != before and data.state is not None and data.state.is_live)
    killed: set[int] = set()

    def has_fallen_back() -> bool:
        attempt = data.state.attempt if data.state is not None else 0
        if attempt in SAME_MODE_ATTEMPTS - killed and kill_rank(studio.rankdeck.showing.run_dir, 1):
            killed.add(attempt)
        return data.state is not None and data.state.fallback is not None and studio.step() >= PICTURE_AT // 4

    studio.wait(has_fallen_back)
    studio.window.tabs.setCurrentWidget(studio.window.tabs.alerts)
    studio.picture("fallback")
    actions.stop.trigger()
    studio.wait(lambda: studio.state() == "stopped")


def failed_run(studio: Studio) -> None:
    """A run whose first rank is killed while it trains."""
    before = studio.rankdeck.showing.run_dir
    studio.wait(studio.window.actions_.start.isEnabled)
    studio.window.actions_.start.trigger()
    studio.wait(lambda: studio.rankdeck.showing.run_dir != before and studio.step() >= PICTURE_AT // 4)
    studio.wait(lambda: kill_rank(studio.rankdeck.showing.run_dir, 0))
    studio.wait(lambda: studio.state() == "failed")


def kill_rank(run_dir: Path | None, rank: int) -> bool:
    """Kills a rank of a run; False while there is none."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if ENV_RANK in environment:
                context = RankContext.from_env(environment)
                if (context.run_dir, context.rank) == (run_dir, rank):
                    process.kill()
                    return True
    return False


def large_picture(studio: Studio) -> None:
    """The window at 150 %, with a run that is shown from its files."""
    window, actions = studio.window, studio.window.actions_
    studio.rankdeck.open()
    studio.wait(lambda: actions.start.isEnabled() and "epoch" in window.new_run.summary.facts.full_text)
    set_field(studio, "steps", "80")
    set_field(studio, "eval_every", "40")
    studio.wait(actions.start.isEnabled)
    actions.start.trigger()
    studio.wait(lambda: studio.step() >= 60)
    studio.picture("150-percent")
    run_dir = studio.rankdeck.showing.run_dir
    assert run_dir is not None
    with contextlib.suppress(RankdeckError):  # it has ended by itself meanwhile
        client.stop_run(RunStore.open(run_dir), now=True)
    studio.wait(lambda: studio.state() not in ("starting", "training", "stopping"))
    window.close_now()


def set_field(studio: Studio, name: str, text: str) -> None:
    """Types into a field of the form."""
    row = studio.window.new_run.form.rows[name]
    row.set_text(text)
    row.edited.emit(name)


def main(arguments: list[str]) -> int:
    """Takes every picture."""
    modes = arguments[-1:] == ["modes"]
    folder = Path(arguments[0]).absolute() if len(arguments) > modes else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    large = os.environ.get("QT_SCALE_FACTOR") == "1.5"
    with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
        studio = Studio(QApplication([]), Path(home), folder)
        (large_picture if large else only_modes if modes else all_pictures)(studio)
    if not large and not modes:
        if SIMULATOR.is_dir():
            with_gpus(
                "two_workstation", ["-m", "tests.screenshots.make_gpu_picture", str(folder)], speed=3, limit_s=LIMIT_S
            )
        env = {**os.environ, "QT_SCALE_FACTOR": "1.5"}
        return subprocess.run([sys.executable, "-m", __spec__.name, str(folder)], env=env, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
