"""Takes pictures as Windows draws them: `python -m tests.screenshots.make_windows_pictures FOLDER [WHEELS]`.

Welcome page, *Set up PyTorch* (choices, at work, failed and, with a folder of wheels, done), training in light and
dark, the tray's message, all on Qt's `windows` platform. Each scene stays for two seconds, so that a program
outside can take the whole screen, where task bar, title bars and messages are: `scene.txt` in the folder has its name.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QApplication, QWidget

from app.machine.environment_dialog import EnvironmentDialog
from core import training_python
from tests.screenshots.make_screenshots import STEPS, Studio, set_field

SCENE = "scene.txt"
SCENE_S = 2.0
MADE_S = 900.0
PICTURE_AT = 60


@contextmanager
def no_torch() -> Iterator[None]:
    """Lets this Python be an installed window's, which has no PyTorch."""
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> object:
        return None if name == "torch" else find(name, package)

    with mock.patch.object(training_python.importlib.util, "find_spec", found):
        yield


def say_scene(studio: Studio, name: str) -> None:
    """Writes down which scene is on the screen."""
    (studio.folder / SCENE).write_text(name, encoding="utf-8")


def scene(studio: Studio, name: str, widget: QWidget | None = None) -> None:
    """One picture of the window, with a dialog over it if there is one."""
    say_scene(studio, name)
    studio.rest(SCENE_S)
    studio.picture(name, widget)
    say_scene(studio, "between")


def setting_up(studio: Studio, home: Path, wheels: Path | None) -> None:
    """The page that sets PyTorch up."""
    window = studio.window
    studio.wait(window.welcome.set_up.isVisible)
    studio.rest(2.0)
    scene(studio, "welcome")
    window.welcome.set_up.click()
    studio.wait(lambda: studio.rankdeck.environment.dialog is not None)
    dialog = studio.rankdeck.environment.dialog
    assert isinstance(dialog, EnvironmentDialog)
    studio.rest(3.0)
    scene(studio, "environment-choices", dialog)
    (home / "empty").mkdir()
    dialog.choose_folder(home / "D")
    dialog.choose_wheels(home / "empty")
    dialog.start.click()
    studio.wait(dialog.notice.isVisible)
    scene(studio, "environment-failed", dialog)
    if wheels is not None:
        dialog.choose_wheels(wheels)
        dialog.start.click()
        studio.wait(lambda: dialog.bar.value() > 150, MADE_S)
        scene(studio, "environment-working", dialog)
        studio.wait(lambda: not dialog.bar.isVisible(), MADE_S)
        scene(studio, "environment-done", dialog)
    dialog.reject()
    studio.rest(1.0)


def training(studio: Studio) -> None:
    """A run, its state in the tray, and the message that it has stopped."""
    window, actions = studio.window, studio.window.actions_
    actions.new_run.setChecked(True)
    studio.rest(3.0)
    scene(studio, "new-run")
    set_field(studio, "steps", str(STEPS))
    set_field(studio, "eval_every", "20")
    studio.wait(actions.start.isEnabled)
    actions.start.trigger()
    studio.wait(lambda: studio.step() >= PICTURE_AT, MADE_S)
    scene(studio, "training-light")
    studio.theme.set_dark(True)
    scene(studio, "training-dark")
    studio.theme.set_dark(False)
    window.showMinimized()
    studio.wait(lambda: studio.state() == "finished", MADE_S)
    say_scene(studio, "message")
    studio.rest(4 * SCENE_S)
    window.showNormal()
    scene(studio, "finished")


def main(folder: Path, wheels: Path | None) -> int:
    """Takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rankdeck pictures ", ignore_cleanup_errors=True) as home:
        os.environ["RANKDECK_HOME"] = f"{home}/runs"
        os.environ["WIN_PD_OVERRIDE_LOCAL_APPDATA"] = home  # what a person has chosen on this PC stays
        if os.environ["QT_QPA_PLATFORM"] == "offscreen":  # as the other pictures want it
            os.environ["QT_QPA_PLATFORM"] = "windows"
        application = QApplication([])
        studio = Studio(application, Path(home), folder)
        if "Segoe UI" not in QFontDatabase.families():  # under Wine
            application.setFont(QFont("Liberation Sans", 9))
        with no_torch():
            studio.rankdeck.open()
            setting_up(studio, Path(home), wheels)
        if wheels is None:
            studio.rankdeck.new_run.look_again()  # this Python's own PyTorch is seen again
        training(studio)
        studio.window.close_now()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None))
