"""Dialog that sets up PyTorch: its choices, and what it shows during and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.machine.environment_dialog import EnvironmentDialog, Offered
from core.environments.make import Progress
from core.environments.places import Places
from core.environments.wanted import Extra
from core.errors import PreflightError
from core.machine.torch_builds import BuildChoice
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [pytest.mark.windows, OFFSCREEN_NOISE]
BUILD = BuildChoice("cu130", "It suits driver 581.", "Update the driver.")
EXTRAS = (Extra("hf", "Models", "Needed by X."), Extra("bpe", "Tokens"))


@pytest.fixture
def dialog(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentDialog:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "RANKDECK_HOME"):
        monkeypatch.delenv(name, raising=False)
    places = Places(tmp_path / "e", tmp_path / "m", tmp_path / "r")
    made = EnvironmentDialog(Offered(BUILD, EXTRAS, places, 10**9))
    qtbot.addWidget(made)
    made.show()
    return made


def test_the_choices_are_handed_over(dialog: EnvironmentDialog, qtbot: QtBot, tmp_path: Path) -> None:
    assert dialog.place_rows["PyTorch"].full_text.startswith(f"{tmp_path / 'e'} (1 GB free")
    assert dialog.extras["hf"].accessibleDescription() == "Needed by X."
    assert dialog.extras["hf"].isChecked(), "what recipes need is chosen"
    dialog.choose_folder(tmp_path / "big")
    dialog.choose_wheels(tmp_path / "wheels")
    root = tmp_path / "big" / "Rankdeck"
    assert dialog.place_rows["PyTorch"].full_text == str(root / "environments")
    assert dialog.place_rows["Runs"].full_text == f"{root / 'runs'} (from the next start of Rankdeck)"
    with qtbot.waitSignal(dialog.start_requested) as asked:
        qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert asked.args == [Places(root / "environments", root / "models", root / "runs"), ("hf",), tmp_path / "wheels"]


def test_a_folder_with_runs_keeps_them(dialog: EnvironmentDialog, tmp_path: Path) -> None:
    (tmp_path / "r" / "one").mkdir(parents=True)
    (tmp_path / "r" / "one" / "run.toml").touch()
    dialog.choose_folder(tmp_path / "big")
    assert dialog.place_rows["Runs"].full_text == f"{tmp_path / 'r'} (there are runs, which stay)"


def test_the_form_gives_way_while_it_is_made_and_comes_back_with_an_error(
    dialog: EnvironmentDialog, qtbot: QtBot
) -> None:
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert not dialog.form.isVisible() and dialog.bar.isVisible() and dialog.stop.text() == "&Pause"
    dialog.show_progress(Progress("Downloading", 10**9, 2 * 10**9))
    assert (dialog.bar.value(), dialog.status.text()) == (500, "Downloading: 1 GB of 2 GB")
    low = dialog.height()
    dialog.show_error(PreflightError("The disk is full.", "Free some space."))
    assert dialog.form.isVisible() and dialog.notice.isVisible() and dialog.height() > low
    assert dialog.start.isVisible() and dialog.start.text() == "&Continue"
    dialog.show_done("PyTorch 2.13.0 is ready.")
    assert not dialog.start.isVisible() and not dialog.form.isVisible() and dialog.notice.title == "PyTorch is set up"
