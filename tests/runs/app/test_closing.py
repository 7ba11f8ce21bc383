"""Closing the window while a run trains: asked once; each answer does what it says, to a real host."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.window.close_question import CloseQuestion
from core.checkpoints.store import CheckpointStore
from tests.helpers.host_fixture import STOPPED, FakeRun, MakeRun
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, shut

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
TRAIN_MS = 60_000


def training(make_run: MakeRun, runs_dir: Path) -> FakeRun:
    """A run that trains for longer than any test."""
    run = make_run(runs_dir=runs_dir).behave(steps=100_000, step_s=0.04, commit_every=1_000)
    return run.start().wait_for_step(5)


def asked(rankdeck: Rankdeck, qtbot: QtBot) -> CloseQuestion:
    """The question, once the window knows of the run."""
    qtbot.waitUntil(lambda: rankdeck.window.header.state.text() == "Training", timeout=TRAIN_MS)
    rankdeck.window.close()
    (question,) = rankdeck.window.findChildren(CloseQuestion)
    assert question.isVisible() and rankdeck.window.isVisible()
    return question


def test_stop_and_commit(make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    run = training(make_run, runs_dir)
    rankdeck = open_window()
    question = asked(rankdeck, qtbot)
    assert rankdeck.display.name_of(run.run_dir) in question.text() and run.run_dir.name not in question.text()
    for text in ("saves a checkpoint at the next step", "Scripts are asked to stop"):
        assert text in question.informativeText()
    qtbot.mouseClick(question.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not rankdeck.window.isVisible(), timeout=TRAIN_MS)
    state = run.end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    newest, damaged = CheckpointStore(run.store.checkpoints).newest_valid()
    assert newest is not None and not damaged
    assert newest.step == state.step >= 5 and run.ledger()["checkpoint"] == newest.number == state.checkpoint


@pytest.mark.parametrize("how", ["Esc", "Cancel"])
def test_staying(how: str, make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    run = training(make_run, runs_dir)
    rankdeck = open_window()
    question = asked(rankdeck, qtbot)
    if how == "Esc":
        qtbot.keyClick(question, Qt.Key.Key_Escape)
    else:
        qtbot.mouseClick(question.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not rankdeck.window.findChildren(CloseQuestion))
    rows = rankdeck.data.series.rank(0).rows
    qtbot.waitUntil(lambda: rankdeck.data.series.rank(0).rows > rows + 20, timeout=TRAIN_MS)
    assert rankdeck.window.isVisible() and run.store.state().state == "training"


def test_keep_training(make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    run = training(make_run, runs_dir)
    first = open_window()
    question = asked(first, qtbot)
    keep = QWidget.focusWidget(question)
    assert keep is question.keep, "Enter keeps it training"
    qtbot.keyClick(question, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not first.window.isVisible(), timeout=TRAIN_MS)
    shut(first)
    run.wait_for_step(run.steps()[-1] + 20)
    second = open_window()
    qtbot.waitUntil(lambda: second.data.is_caught_up and second.data.series.rank(0).rows > 20, timeout=TRAIN_MS)
    assert second.showing.run_dir == run.run_dir
    rank = second.data.series.rank(0)
    steps = [int(step) for step in rank.columns["step"].read(0, rank.rows)]
    assert steps == list(range(1, len(steps) + 1)), "from its first point, none missing, none twice"


def test_stopping_several(make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    one = training(make_run, runs_dir)
    other = make_run(runs_dir=runs_dir, devices=("cpu:1",), mode="single")
    other.run_dir = runs_dir / "another run"
    other.behave(steps=100_000, step_s=0.04).start().wait_for_step(5)
    rankdeck = open_window()
    question = asked(rankdeck, qtbot)
    assert "2 runs are training: " in question.text()
    question.stop.click()
    qtbot.waitUntil(lambda: not rankdeck.window.isVisible(), timeout=TRAIN_MS)
    assert [run.end().state for run in (one, other)] == [STOPPED, STOPPED]


def test_a_run_that_ends_while_the_question_stands(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    run = training(make_run, runs_dir)
    rankdeck = open_window()
    question = asked(rankdeck, qtbot)
    assert run.stop().end().state == STOPPED
    question.stop.click()
    qtbot.waitUntil(lambda: not rankdeck.window.isVisible(), timeout=TRAIN_MS)
