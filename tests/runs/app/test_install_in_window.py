"""Missing packages, from the window: named, offered with the command, installed by a real pip, looked for again."""

from __future__ import annotations

import dataclasses
import socket
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.new_run.install_controller import explain
from app.new_run.install_dialog import InstallDialog
from core.machine.packages import MissingPackageError
from tests.helpers.children import children_with
from tests.helpers.small_wheels import make_wheel
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000
PIP_MS = 90_000
LEFT = Qt.MouseButton.LeftButton
PACKAGE = "rankdeck_tried_package"
RECIPE = f"""
format = "rankdeck-recipe"
version = 1
name = "needy"
title = "Needy"
requires = ["{PACKAGE}"]
"""


@pytest.fixture
def wheels(runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe that needs a package; the only folder that pip looks into. It installs into a folder of the test's."""
    folder = runs_dir / "recipes" / "needy"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8", newline="\n")
    (folder / "train.py").write_text("", encoding="utf-8")
    found, target = tmp_path / "wheels", tmp_path / "installed"
    found.mkdir()
    target.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", found.as_uri())
    monkeypatch.setenv("PIP_TARGET", str(target))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip cache"))
    monkeypatch.syspath_prepend(str(target))
    return found


def offered(rankdeck: Rankdeck, qtbot: QtBot) -> InstallDialog:
    """Chooses the recipe and presses the button in the bar that says what is missing."""
    sheet = rankdeck.window.new_run
    sheet.recipe.setCurrentIndex(sheet.recipe.findData("needy"))
    qtbot.waitUntil(sheet.what.recipe_remedies.isVisible, timeout=SOON_MS)
    assert PACKAGE in sheet.what.recipe_problem.text() and "pip" not in sheet.what.recipe_problem.text()
    assert not rankdeck.window.actions_.start.isEnabled()
    assert PACKAGE in rankdeck.window.actions_.start.toolTip()
    qtbot.mouseClick(sheet.what.recipe_remedies.buttons[0], LEFT)
    dialog = rankdeck.new_run.install_dialog
    assert dialog is not None and dialog.isVisible()
    return dialog


@pytest.mark.slow
def test_what_is_missing_is_installed_when_asked_for(open_sheet: OpenWindow, wheels: Path, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    dialog = offered(rankdeck, qtbot)
    command = dialog.command.toPlainText()
    assert sys.executable in command and "-m pip install" in command and command.endswith(PACKAGE)
    assert not dialog.output.isVisible() and not rankdeck.new_run.installing.is_going, "nothing runs unasked"

    qtbot.mouseClick(dialog.install, LEFT)  # there is no such package yet
    qtbot.waitUntil(dialog.notice.isVisible, timeout=PIP_MS)
    assert dialog.notice.title == "The packages were not installed"
    assert f"No matching distribution found for {PACKAGE}" in dialog.notice.text
    assert "ERROR" in dialog.output.toPlainText() and not rankdeck.window.actions_.start.isEnabled()

    make_wheel(wheels, PACKAGE, "1.0", "")
    qtbot.mouseClick(dialog.install, LEFT)
    qtbot.waitUntil(lambda: dialog.notice.title == "Installed", timeout=PIP_MS)
    assert f"Successfully installed {PACKAGE}" in dialog.output.toPlainText().replace("-", "_")
    qtbot.mouseClick(dialog.cancel, LEFT)
    assert rankdeck.new_run.install_dialog is None
    qtbot.waitUntil(rankdeck.window.actions_.start.isEnabled, timeout=SOON_MS)
    assert not rankdeck.window.new_run.what.recipe_remedies.isVisible()


@pytest.mark.usefixtures("wheels")
def test_an_installation_is_cancelled(open_sheet: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an index that never answers
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        silent.settimeout(PIP_MS / 1000)
        rankdeck = open_sheet()
        dialog = offered(rankdeck, qtbot)
        qtbot.mouseClick(dialog.install, LEFT)
        qtbot.waitUntil(lambda: bool(children_with(" pip ")), timeout=PIP_MS)
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
        assert dialog.isVisible(), "what goes on is not hidden"
        qtbot.mouseClick(dialog.cancel, LEFT)
        qtbot.waitUntil(lambda: dialog.notice.title == "Cancelled", timeout=SOON_MS)
        assert not rankdeck.new_run.installing.is_going and dialog.install.isEnabled()
        dialog.reject()


def test_deepspeed_is_offered_where_the_mode_wants_it(open_sheet: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    drafting, mode = rankdeck.drafting, rankdeck.window.new_run.mode
    platform = drafting._platform
    assert platform is not None
    drafting._on_platform(dataclasses.replace(platform, deepspeed_version=None))
    assert not mode.install.isVisible()
    mode.radios["zero"].click()
    assert mode.install.isVisible()
    qtbot.mouseClick(mode.install, LEFT)
    dialog = rankdeck.new_run.install_dialog
    assert dialog is not None and "deepspeed" in dialog.cause.text() and "deepspeed" in dialog.command.toPlainText()
    dialog.reject()
    drafting._on_platform(dataclasses.replace(platform, deepspeed_version="0.19.8"))
    assert not mode.install.isVisible()


def test_a_run_that_lacks_a_package_offers_it_too(open_sheet: OpenWindow) -> None:
    rankdeck = open_sheet()
    rankdeck.launching.start_failed.emit(MissingPackageError(("peft",), "The recipe X"))
    notice = rankdeck.window.new_run.notice
    button = notice.findChild(QPushButton, "step")
    assert "needs the package peft" in notice.text and "pip" not in notice.text
    assert isinstance(button, QPushButton) and button.text() == "Insta&ll…"


def test_pips_failures_are_explained() -> None:
    known, unknown = explain("/usr/bin/python: No module named pip", 1), explain("Segmentation fault", 3)
    assert "no pip" in known.cause and "ensurepip" in known.next_step
    assert "exit code 3" in unknown.cause and "in a terminal" in unknown.next_step
