"""Where the window opens: within its screen at any scale, and where it was left, also by one that was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.settings_file import settings_in
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE]
PROGRAM = """
import os, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
application = QApplication([])
from app.main import Rankdeck
from tests.helpers.settings_file import settings_in
folder, place = Path(sys.argv[1]), sys.argv[2:]
window = Rankdeck(settings_in(folder / "settings.ini"), folder / "runs").window
window.show()
application.processEvents()
if place:
    window.setGeometry(*map(int, place))
    while window.place._soon.isActive():
        application.processEvents()
    application.processEvents()
frame, screens = window.frameGeometry(), [screen.availableGeometry() for screen in application.screens()]
print(any(screen.contains(frame) for screen in screens), frame.width(), frame.height())
sys.stdout.flush()
os._exit(0)  # as one that is killed
"""


def open_once(folder: Path, screens: list[tuple[int, int, int]], *place: int, scale: float = 1.0) -> list[str]:
    """Opens the window in a process that is ended without closing it.

    Args:
        screens: Left edge, width and height of each.
        place: Where a person moves the window to: left, top, width and height.
    """
    shapes = [
        {"name": f"screen {number}", "x": x, "y": 0, "width": width, "height": height, "logicalDpi": 96}
        | {"logicalBaseDpi": 96, "dpr": 1}
        for number, (x, width, height) in enumerate(screens)
    ]
    (folder / "screens.json").write_text(json.dumps({"screens": shapes}), encoding="utf-8", newline="\n")
    platform = "offscreen:configfile=screens.json"
    environment = {**os.environ, "QT_QPA_PLATFORM": platform, "QT_SCALE_FACTOR": str(scale)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", PROGRAM, str(folder), *map(str, place)]
    answer = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=100, check=True
    )
    return answer.stdout.split()


@pytest.mark.skipif(sys.platform == "win32", reason="the offscreen platform's font is not there")
@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1366, 768)])
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_the_first_window_fits_its_screen(tmp_path: Path, scale: float, width: int, height: int) -> None:
    assert open_once(tmp_path, [(0, width, height)], scale=scale)[0] == "True"


@pytest.mark.skipif(sys.platform == "win32", reason="the offscreen platform's font is not there")
def test_a_window_that_was_killed_opens_where_it_was(tmp_path: Path) -> None:
    both = [(0, 1920, 1080), (1920, 1920, 1080)]
    moved = open_once(tmp_path, both, 2200, 100, 1000, 700)
    assert open_once(tmp_path, both) == moved
    assert open_once(tmp_path, both[:1])[0] == "True", "its screen is gone"
    assert open_once(tmp_path, [(0, 1280, 720)])[0] == "True", "a smaller screen"


def test_its_place_is_kept_while_it_runs(open_window: OpenWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window().window
    window.resize(1010, 610)
    window._settings.sync()
    before = settings_in(tmp_path / "settings.ini").layout("window/geometry")
    qtbot.waitUntil(lambda: not window.place._soon.isActive())
    window._settings.sync()
    assert settings_in(tmp_path / "settings.ini").layout("window/geometry") == window.saveGeometry() != before
