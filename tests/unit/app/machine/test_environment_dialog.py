"""Dialog that sets up PyTorch: what it asks, and what it shows before, during and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.machine.environment_dialog import EnvironmentDialog
from app.machine.environment_text import SIZES_WAIT, Offered
from core.environments.extras import Extra
from core.environments.places import Places
from core.errors import PreflightError
from core.machine.drives import Drive
from core.machine.torch_builds import BuildChoice
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [pytest.mark.windows, OFFSCREEN_NOISE]
BUILD = BuildChoice("cu130", "It suits driver 581.", "Update the driver.")
EXTRAS = (Extra("hf", "Models", "Needed by X."), Extra("deepspeed", "DeepSpeed", "Why", "It has no wheel."))


@pytest.fixture
def dialog(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentDialog:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "RANKDECK_HOME"):
        monkeypatch.delenv(name, raising=False)
    places = Places(tmp_path / "e", tmp_path / "m", tmp_path / "r")
    drives = (Drive(tmp_path / "big", 800 * 10**9, 10**12),)
    made = EnvironmentDialog(Offered(BUILD, EXTRAS, places, drives, 10**9))
    qtbot.addWidget(made)
    made.show()
    return made


def test_sizes_are_asked_for_at_once_and_for_each_choice(
    dialog: EnvironmentDialog, qtbot: QtBot, tmp_path: Path
) -> None:
    asked: list[tuple[Places, tuple[str, ...], Path | None]] = []
    dialog.choice_changed.connect(lambda *choice: asked.append(choice))
    dialog.choose_wheels(None)
    qtbot.waitUntil(lambda: bool(asked))
    assert asked[-1][1:] == (("hf",), None), "what recipes need is chosen" and dialog.sizes.text() == SIZES_WAIT
    dialog.show_sizes("Download: 2 GB.", "There is no room.")
    assert dialog.sizes.text() == "Download: 2 GB." and dialog.too_large.isVisible()
    dialog.drive.setCurrentIndex(1)
    dialog.extras["hf"].setChecked(False)
    qtbot.waitUntil(lambda: asked[-1][1] == ())
    assert asked[-1][0].models == tmp_path / "big" / "Rankdeck" / "models"
    assert dialog.place_rows["PyTorch"].full_text == str(tmp_path / "big" / "Rankdeck" / "environments")
    assert not dialog.too_large.isVisible()


def test_what_cannot_be_had_cannot_be_ticked_and_says_why(dialog: EnvironmentDialog) -> None:
    box = dialog.extras["deepspeed"]
    assert not box.isEnabled() and box.accessibleDescription() == "It has no wheel."
    assert dialog.extras["hf"].isEnabled()


def test_the_form_gives_way_while_it_is_made_and_comes_back_with_an_error(
    dialog: EnvironmentDialog, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(dialog.start_requested):
        qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert not dialog.form.isVisible() and dialog.summary.isVisible() and dialog.bar.isVisible()
    dialog.show_progress("Downloading: 1 GB of 2 GB", 500)
    assert (dialog.bar.value(), dialog.status.text()) == (500, "Downloading: 1 GB of 2 GB")
    low = dialog.height()
    dialog.show_error(PreflightError("The disk is full.", "Free some space."))
    assert dialog.form.isVisible() and dialog.notice.isVisible() and dialog.height() > low
    assert dialog.start.isVisible() and dialog.start.text() == "&Continue"
    dialog.show_done("PyTorch 2.13.0 is ready.")
    assert not dialog.start.isVisible() and not dialog.form.isVisible() and dialog.notice.title == "PyTorch is set up"


def test_sizes_that_did_not_come_are_not_waited_for_while_it_is_made(dialog: EnvironmentDialog, qtbot: QtBot) -> None:
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert not dialog.sizes.isVisible()
    with qtbot.waitSignal(dialog.choice_changed):
        dialog.show_stopped()
    assert dialog.sizes.isVisible() and dialog.sizes.text() == SIZES_WAIT
    dialog.show_sizes("Download: 2 GB.")
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert dialog.sizes.isVisible()
