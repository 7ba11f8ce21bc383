"""*Set up PyTorch…* on the welcome page of a window whose Python has none: a real Python, pip and small wheels."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.machine.environment_dialog import EnvironmentDialog
from app.main import Rankdeck
from core import training_python as training_module
from core.environments import make as make_module
from core.environments import wanted as wanted_module
from core.environments.record import executable_in, list_environments
from core.training_python import chosen_python
from tests.helpers.kept_folders import nothing_chosen
from tests.helpers.small_wheels import TORCH, make_wheel
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.slow, pytest.mark.timeout(300)]
MADE_MS = 200_000
NO_TORCH = "✕ PyTorch is not installed. Set it up."


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """This Python as an installed window's, and pip as it is on a machine without settings of its own."""
    find: Callable[..., object] = importlib.util.find_spec
    monkeypatch.setattr(
        training_module.importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest)
    )
    training_module.choice_file().unlink(missing_ok=True)
    monkeypatch.delenv(training_module.VARIABLE, raising=False)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(
        make_module, "CHECK", ("-c", "import json, torch; print(json.dumps({'torch': torch.__version__}))")
    )
    monkeypatch.setattr(wanted_module, "find_dependencies", lambda: ("torch>=2.7",))


@pytest.fixture(autouse=True)
def _no_folders() -> Iterator[None]:
    with nothing_chosen():
        yield


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "my wheels"
    folder.mkdir()
    name = "torch-2.13.0-py3-none-any.whl" if sys.platform == "win32" else "torch-2.13.0+cpu-py3-none-any.whl"
    version = name.split("-")[1]
    make_wheel(folder, "torch", version, TORCH.replace("2.13.0", version))
    return folder


def opened(open_window: OpenWindow, qtbot: QtBot) -> tuple[Rankdeck, EnvironmentDialog]:
    rankdeck = open_window()
    welcome = rankdeck.window.welcome
    qtbot.waitUntil(welcome.set_up.isVisible)
    assert not welcome.demo.isVisible(), "the demo needs PyTorch"
    qtbot.mouseClick(welcome.set_up, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: rankdeck.environment.dialog is not None)
    dialog = rankdeck.environment.dialog
    assert dialog is not None and dialog.isVisible()
    return rankdeck, dialog


def start(dialog: EnvironmentDialog, qtbot: QtBot, wheels: Path, folder: Path) -> None:
    dialog.choose_folder(folder)
    dialog.choose_wheels(wheels)
    for box in dialog.extras.values():
        box.setChecked(False)  # the folder has no wheels for recipes
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)


def test_it_is_set_up_paused_continued_and_chosen(
    open_window: OpenWindow, qtbot: QtBot, wheels: Path, tmp_path: Path
) -> None:
    rankdeck, dialog = opened(open_window, qtbot)
    problem = rankdeck.window.new_run.what.recipe_problem
    qtbot.waitUntil(lambda: problem.text() == NO_TORCH)
    start(dialog, qtbot, wheels, tmp_path)
    folder = tmp_path / "Rankdeck" / "environments"
    qtbot.waitUntil(lambda: dialog.status.text().startswith(("Copying", "Looking")))
    assert not dialog.start.isEnabled() and dialog.stop.text() == "&Pause"
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.start.isEnabled, timeout=MADE_MS)
    assert dialog.isVisible() and dialog.start.text() == "&Continue" and chosen_python() is None
    assert [one.record.state for one in list_environments(folder)] == ["making"]

    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "is ready" in dialog.notice.text, timeout=MADE_MS)
    (made,) = list_environments(folder)
    assert made.record.state == "ready" and chosen_python() == executable_in(made.folder)
    welcome = rankdeck.window.welcome
    qtbot.waitUntil(lambda: welcome.demo.isVisible() and not welcome.set_up.isVisible())
    qtbot.waitUntil(lambda: "PyTorch 2.13.0" in welcome.machine.text())
    qtbot.waitUntil(lambda: problem.text() != NO_TORCH)
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: rankdeck.environment.dialog is None)
    rankdeck.window.actions_.environment.trigger()
    qtbot.waitUntil(lambda: rankdeck.environment.dialog is not None)


def test_what_is_missing_is_said_with_a_next_step(
    open_window: OpenWindow, qtbot: QtBot, wheels: Path, tmp_path: Path
) -> None:
    for wheel in wheels.iterdir():
        wheel.unlink()
    _, dialog = opened(open_window, qtbot)
    start(dialog, qtbot, wheels, tmp_path)
    qtbot.waitUntil(dialog.notice.isVisible, timeout=MADE_MS)
    assert f"{wheels} has no wheel of torch==2.13.0" in dialog.notice.text
    assert dialog.start.isEnabled() and dialog.start.text() == "&Continue"
    assert dialog.offline.isEnabled() and dialog.other.isEnabled(), "the folder was wrong, so another can be chosen"
    boxes = list(dialog.extras.values())
    assert all(box.height() >= box.sizeHint().height() for box in boxes), "the dialog grew with its message"
    assert chosen_python() is None


def test_closing_the_window_ends_it(open_window: OpenWindow, qtbot: QtBot, wheels: Path, tmp_path: Path) -> None:
    rankdeck, dialog = opened(open_window, qtbot)
    start(dialog, qtbot, wheels, tmp_path)
    qtbot.waitUntil(lambda: dialog.status.text().startswith(("Copying", "Looking")))
    rankdeck.window.close()
    assert [one.record.state for one in list_environments(tmp_path / "Rankdeck" / "environments")] == ["making"]
