"""Recipes dropped into the person's folder while the window is open appear: with their form, or with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from core.recipes.scaffold import new_recipe
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000


def titles(rankdeck: Rankdeck) -> list[str]:
    combo = rankdeck.window.new_run.recipe
    return [combo.itemText(row) for row in range(combo.count())]


def test_a_recipe_that_is_dropped_in_appears_with_its_form(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    sheet = rankdeck.window.new_run
    type_into(rankdeck, "steps", "123", qtbot)
    made = new_recipe("my-model")
    qtbot.waitUntil(lambda: "my-model" in titles(rankdeck), timeout=SOON_MS)
    assert sheet.what.chosen() is not None and sheet.draft().recipe == "minigpt", "what is chosen stays chosen"
    assert sheet.draft().fields["steps"] == "123"
    sheet.recipe.setCurrentIndex(sheet.recipe.findData("my-model"))
    assert sheet.form.rows["width"].default == "64"
    command = sheet.summary.command
    qtbot.waitUntil(lambda: "--recipe my-model" in command.text(), timeout=SOON_MS)

    type_into(rankdeck, "steps", "77", qtbot)
    manifest = made / "recipe.toml"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace("default = 64", "default = 96"), encoding="utf-8", newline="\n")
    qtbot.waitUntil(lambda: sheet.form.rows["width"].default == "96", timeout=SOON_MS)
    assert sheet.draft().fields["steps"] == "77", "what was typed stays"

    shutil.rmtree(made)
    qtbot.waitUntil(lambda: "my-model" not in titles(rankdeck), timeout=SOON_MS)
    assert sheet.draft().recipe == "minigpt" and "width" not in sheet.draft().fields


def test_a_broken_one_is_shown_with_the_reason(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    rankdeck = open_window()
    sheet = rankdeck.window.new_run
    assert sheet.what.unusable.text() == ""
    folder = runs_dir / "recipes" / "half"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    qtbot.waitUntil(lambda: "no recipe.toml" in sheet.what.unusable.text(), timeout=SOON_MS)
    assert "half (cannot be used)" in titles(rankdeck)
    item = sheet.recipe.model().index(sheet.recipe.findData("half"), 0)
    assert not item.flags() & Qt.ItemFlag.ItemIsEnabled
    text = 'format = "rankdeck-recipe"\nversion = 1\nname = "half"\n'
    (folder / "recipe.toml").write_text(text + "range = 3\n", encoding="utf-8")
    qtbot.waitUntil(lambda: "unknown key 'range'" in sheet.what.unusable.text(), timeout=SOON_MS)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    qtbot.waitUntil(lambda: sheet.what.unusable.text() == "", timeout=SOON_MS)
    assert "half" in titles(rankdeck)
