"""Drafts of New run are on the disk soon after each edit, for each recipe."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.new_run.draft_saving_controller import DraftSavingController
from app.new_run.new_run_sheet import NewRunSheet
from app.settings import Settings
from core.recipes.catalog import find_recipes
from tests.helpers.settings_file import settings_in
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
    panel.run_name.setText("first try")
    panel.set_field("steps", "77")
    choose(panel, "script")
    panel.set_field("script", "/home/ada/train.py")

    def is_on_disk() -> bool:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return "77" in text and "/home/ada/train.py" in text

    qtbot.waitUntil(is_on_disk)  # nothing was closed
    kept = tmp_path / "after the kill.ini"  # Qt keeps what it knows of an open file
    shutil.copy(file, kept)
    again, _ = opened(settings_in(kept), qtbot)
    assert again.recipe.currentData() == "script" and again.form.rows["script"].text() == "/home/ada/train.py"
    choose(again, "minigpt")
    assert again.form.rows["steps"].text() == "77" and again.run_name.text() == "first try"
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
