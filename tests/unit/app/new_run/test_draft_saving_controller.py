"""Drafts of New run are on the disk soon after each edit, for each recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from app.new_run.draft_saving_controller import DraftSavingController
from app.new_run.new_run_sheet import NewRunSheet
from app.settings import Settings, settings_in
from core.recipes.catalog import find_recipes
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def opened(settings: Settings, qtbot: QtBot) -> tuple[NewRunSheet, DraftSavingController]:
    panel = NewRunSheet(find_recipes())
    qtbot.addWidget(panel)
    saving = DraftSavingController(panel, settings, panel)
    saving.open()
    return panel, saving


def choose(panel: NewRunSheet, recipe: str) -> None:
    panel.recipe.setCurrentIndex(panel.recipe.findData(recipe))


def test_a_window_that_is_killed_loses_no_setting(qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "settings.ini"
    panel, _saving = opened(settings_in(file), qtbot)
    panel.set_field("steps", "77")
    choose(panel, "script")
    panel.set_field("script", "/home/ada/train.py")

    def on_disk() -> str:
        return QSettings(str(file), QSettings.Format.IniFormat).value("values/drafts", "")

    qtbot.waitUntil(lambda: "77" in on_disk())  # nothing was closed
    again, _ = opened(settings_in(file), qtbot)
    assert again.recipe.currentData() == "script" and again.form.rows["script"].text() == "/home/ada/train.py"
    choose(again, "minigpt")
    assert again.form.rows["steps"].text() == "77"
    choose(again, "script")
    assert again.form.rows["script"].text() == "/home/ada/train.py"


def test_a_recipe_that_is_gone_for_now_keeps_its_draft(qtbot: QtBot, tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "settings.ini")
    settings.set_values("draft", {"recipe": "own_recipe", "fields": {"steps": "5"}})
    panel, saving = opened(settings, qtbot)
    assert panel.recipe.currentData() == "minigpt"
    panel.set_field("steps", "6")
    saving.save()
    assert settings.values("drafts")["own_recipe"]["fields"] == {"steps": "5"}
    assert settings.values("draft")["fields"]["steps"] == "6"


def test_settings_of_a_run_do_not_push_out_what_was_set(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = opened(settings_in(tmp_path / "settings.ini"), qtbot)
    panel.set_field("steps", "77")
    choose(panel, "script")
    draft = panel.draft()
    choose(panel, "minigpt")
    panel.set_draft(draft)
    choose(panel, "minigpt")
    assert panel.form.rows["steps"].text() == "77"
