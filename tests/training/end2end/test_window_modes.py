"""Modes through the real window, for real: chosen by clicking, trained, and gone on with in another mode."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from core.run_folder.store import RunStore
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into
from tests.training.end2end.test_window_trains import TRAIN_MS, set_up, state_of, steps_shown

pytestmark = [
    OFFSCREEN_NOISE,
    pytest.mark.usefixtures("quick_hosts"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="trains for real, and there is no torch"),
]
ENGINE = "torch" if importlib.util.find_spec("deepspeed") is None else "deepspeed"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("peter piper picked a peck of pickled peppers\n" * 1500, encoding="utf-8")
    return path


def choose_zero(rankdeck: Rankdeck, stage: int, engine: str = "torch") -> None:
    """Picks ZeRO, a stage, and an engine."""
    mode = rankdeck.window.new_run.mode
    mode.radios["zero"].click()
    for name, value in (("zero_stage", str(stage)), ("zero_engine", engine)):
        editor = mode.zero.rows[name].editor
        assert isinstance(editor, QComboBox)
        editor.setCurrentIndex(editor.findData(value))


def start(rankdeck: Rankdeck, qtbot: QtBot) -> None:
    actions = rankdeck.window.actions_
    before = rankdeck.showing.run_dir
    qtbot.waitUntil(actions.start.isEnabled)
    actions.start.trigger()
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir != before, timeout=TRAIN_MS)


def finished(rankdeck: Rankdeck, qtbot: QtBot, steps: int) -> None:
    qtbot.waitUntil(lambda: state_of(rankdeck) == "finished", timeout=TRAIN_MS)
    for rank in (0, 1):
        qtbot.waitUntil(lambda rank=rank: steps_shown(rankdeck, rank) == list(range(1, steps + 1)), timeout=10_000)


def resume_in_the_sheets_mode(rankdeck: Rankdeck, qtbot: QtBot, words: str) -> int:
    """Stops the run, resumes it in New run's mode after its plan said so; returns the step it was stopped at."""
    actions = rankdeck.window.actions_
    actions.stop.trigger()
    qtbot.waitUntil(lambda: state_of(rankdeck) == "stopped", timeout=TRAIN_MS)
    run_dir = rankdeck.showing.run_dir
    assert run_dir is not None
    stopped_at = RunStore.open(run_dir).state().step
    actions.resume.trigger()
    dialog = rankdeck.control.dialog
    assert dialog is not None
    qtbot.waitUntil(dialog.go.isEnabled, timeout=10_000)
    assert words not in dialog.message.text()
    dialog.form.mode.setCurrentIndex(1)
    dialog.form.mode.activated.emit(1)
    assert not dialog.go.isEnabled(), "first its new plan is shown"
    qtbot.waitUntil(lambda: dialog.go.isEnabled() and words in dialog.message.text(), timeout=10_000)
    dialog.go.click()
    qtbot.waitUntil(lambda: len(steps_shown(rankdeck, 1)) > stopped_at + 5, timeout=TRAIN_MS)
    return stopped_at


def test_zero_stage_2_and_a_dial_of_ten_steps(open_window: OpenWindow, qtbot: QtBot, text: Path) -> None:
    rankdeck = open_window()
    set_up(rankdeck, text, qtbot, steps="12")
    choose_zero(rankdeck, 2)
    start(rankdeck, qtbot)
    finished(rankdeck, qtbot, 12)
    assert rankdeck.data.state is not None and rankdeck.data.state.mode == "zero"
    assert rankdeck.window.tabs.config.notes.text().startswith("The model has ")

    type_into(rankdeck, "steps", "20", qtbot)
    rankdeck.window.new_run.mode.radios["independent"].click()
    rankdeck.window.new_run.mode.sync_interval.slider.setValue(3)
    assert "--sync-every 10" in rankdeck.window.new_run.summary.command.text()
    start(rankdeck, qtbot)
    finished(rankdeck, qtbot, 20)
    assert rankdeck.data.state.mode == "independent"
    qtbot.waitUntil(lambda: "Synchronised" in rankdeck.window.tabs.config.notes.text())


def test_a_stopped_run_goes_on_in_the_mode_that_is_chosen_in_new_run(
    open_window: OpenWindow, qtbot: QtBot, text: Path
) -> None:
    rankdeck = open_window()
    set_up(rankdeck, text, qtbot, steps="5000", eval_every="1000")
    rankdeck.window.new_run.mode.radios["ddp"].click()
    start(rankdeck, qtbot)
    qtbot.waitUntil(lambda: len(steps_shown(rankdeck, 1)) >= 10, timeout=TRAIN_MS)
    choose_zero(rankdeck, 1, ENGINE)
    resume_in_the_sheets_mode(rankdeck, qtbot, "ZeRO on CPU 0, CPU 1")
    assert rankdeck.data.state is not None and rankdeck.data.state.mode == "zero"
    assert rankdeck.data.state.fallback is None, "the engine that was chosen shards"
    assert rankdeck.showing.run_dir is not None
    assert f'zero_engine = "{ENGINE}"' in (rankdeck.showing.run_dir / "run.toml").read_text(encoding="utf-8")
    rankdeck.window.new_run.mode.radios["independent"].click()
    stopped_at = resume_in_the_sheets_mode(rankdeck, qtbot, "parallel-independent on CPU 0, CPU 1")
    assert rankdeck.data.state.mode == "independent"
    assert steps_shown(rankdeck, 0)[:stopped_at] == list(range(1, stopped_at + 1)), "no step missing or twice"
    run_dir = rankdeck.showing.run_dir
    assert run_dir is not None
    launches = [
        line["mode"]
        for line in map(json.loads, (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        if line["event"] == "launch"
    ]
    assert launches == ["ddp", "zero", "independent"]
