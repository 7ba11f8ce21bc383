"""The welcome page: four ways to begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from core.launch.resolved import ResolvedRun
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_it_says_what_there_is(open_window: OpenWindow, qtbot: QtBot) -> None:
    page = open_window().window.welcome
    qtbot.waitUntil(lambda: page.found.text().startswith("Runs use CPU 0"), timeout=10_000)
    qtbot.waitUntil(lambda: page.machine.text().startswith("This machine: PyTorch"), timeout=10_000)
    assert "free on" in page.machine.text() and "about two minutes" in page.cards[0].text.text()


def test_the_list_of_runs_comes_with_the_first_run(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    window = open_window().window
    qtbot.waitUntil(window.runs.isHidden, timeout=10_000)
    write_lines(runs_dir / "first", Shape(steps=5))
    qtbot.waitUntil(window.runs.isVisible, timeout=10_000)
    assert window.runs.width() > 150


def test_the_demo_starts_whatever_new_run_holds(
    open_window: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck = open_window()
    started: list[ResolvedRun] = []
    monkeypatch.setattr(rankdeck.launching, "start", started.append)
    type_into(rankdeck, "steps", "7", qtbot)
    page = rankdeck.window.welcome
    qtbot.waitUntil(lambda: bool(page.machine.text()), timeout=10_000)
    page.demo.click()
    (run,) = started
    assert run.config.recipe == "minigpt" and run.config.dataset_file == "stdlib://" and run.config.steps == 1000
    assert rankdeck.window.new_run.form.rows["steps"].text() == "7"


def test_a_model_is_asked_for_in_new_run(open_window: OpenWindow) -> None:
    window = open_window().window
    window.welcome.model.click()
    recipe = window.new_run.what.chosen()
    assert window.desk.is_open and recipe is not None and recipe.name == "hf_causal_lm"


def test_a_script_is_chosen_at_once(open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    window = open_window().window
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args, **_more: ("/data/train me.py", ""))
    window.welcome.script.click()
    assert window.desk.is_open
    assert Path(window.new_run.form.rows["script"].text()) == Path("/data/train me.py")


def test_an_earlier_run_is_opened_from_its_file(open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    rankdeck = open_window()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args, **_more: ("", ""))
    rankdeck.window.welcome.resume.click()
    dialog = rankdeck.resuming.dialog
    assert dialog is not None and dialog.isVisible()
    dialog.reject()


def test_the_page_says_that_a_run_is_being_started(open_window: OpenWindow) -> None:
    rankdeck = open_window()
    rankdeck.launching.busy_changed.emit("starting a run")
    assert rankdeck.window.welcome.demo.text() == "Starting…" and not rankdeck.window.welcome.demo.isEnabled()
    assert rankdeck.window.actions_.start.text() == "Starting…"
    rankdeck.launching.busy_changed.emit("")
    assert rankdeck.window.welcome.demo.isEnabled()
