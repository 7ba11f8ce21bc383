"""A DDP run that cannot start falls back: the window says so plainly, once, and says what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from tests.helpers.host_fixture import FakeRun, MakeRun
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = OFFSCREEN_NOISE
TRAIN_MS = 60_000
INDEPENDENT = "Each device trains its own model"


def fallen_back(run: FakeRun, open_window: OpenWindow, qtbot: QtBot) -> Rankdeck:
    """The window on a run that is training on what is left."""
    run.start().wait_for_event("fallback")
    run.wait(lambda state: state.state == "training")
    rankdeck = open_window()
    qtbot.waitUntil(lambda: rankdeck.window.header.state.text() == "Training", timeout=TRAIN_MS)
    qtbot.waitUntil(lambda: rankdeck.data.series.rank(0).rows >= 5, timeout=TRAIN_MS)
    assert rankdeck.showing.run_dir == run.run_dir
    return rankdeck


def alerts(rankdeck: Rankdeck) -> list[str]:
    table = rankdeck.window.tabs.alerts.table
    return [item.text() for row in range(table.rowCount()) if (item := table.item(row, 3)) is not None]


@pytest.mark.windows
def test_a_rank_that_dies_before_the_first_step(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    run = make_run(runs_dir=runs_dir).behave(steps=20_000, step_s=0.03)
    rankdeck = fallen_back(run.fail_at(1, "ready", "exit:3", fail_attempts=[1]), open_window, qtbot)
    window, notice = rankdeck.window, rankdeck.window.outcome
    assert notice.title == INDEPENDENT and notice.isVisible()
    for part in ("DDP on 2 devices could not start", "never an average", "exit code 3", "stop the run and resume it"):
        assert part in notice.text, notice.text
    if folder := os.environ.get("RANKDECK_TEST_PICTURES"):
        qtbot.wait(1000)
        window.grab().save(f"{folder}/fallback.png")
    qtbot.waitUntil(lambda: "parallel-independent on CPU 0 + CPU 1" in window.header.about.full_text)
    qtbot.waitUntil(lambda: window.tabs.tabText(window.tabs.indexOf(window.tabs.alerts)) == "Alerts 1")
    (said,) = alerts(rankdeck)
    assert said.startswith("DDP could not start, so each device trains its own model, and the best one is kept.")
    assert "The process on CPU 1, before its first" in said

    notice.show_log.click()
    assert window.tabs.currentWidget() is window.tabs.log and window.tabs.log.source.currentText() == "CPU 1"
    lines = rankdeck.log.model
    qtbot.waitUntil(lambda: any("fails at ready" in lines.line(row) for row in range(lines.rowCount())))

    assert rankdeck.data.state is not None
    notice.close_button.click()
    step = rankdeck.data.state.step
    qtbot.waitUntil(lambda: rankdeck.data.state is not None and rankdeck.data.state.step > step + 50, timeout=TRAIN_MS)
    assert not notice.isVisible(), "a card that was dismissed stays away while the run continues"

    window.actions_.stop.trigger()
    qtbot.waitUntil(lambda: window.header.state.text() == "Stopped", timeout=TRAIN_MS)
    assert notice.title == "Fell back to independent training" and "resume the run" in notice.text, (
        "the run ended: what to do now is another thing"
    )
