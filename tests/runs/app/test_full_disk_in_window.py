"""A disk that takes no more: the window says so while the run trains, and stops saying so when there is room."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.host_fixture import MakeRun
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow
from tests.runs.faults.test_full_disk import FLOOD, limit_files

pytestmark = [
    OFFSCREEN_NOISE,
    pytest.mark.skipif(sys.platform != "linux", reason="prlimit on another process is Linux's"),
]
WAIT_MS = 60_000


def test_the_bar_says_so_and_goes_away(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    run = make_run(runs_dir=runs_dir).behave(steps=100_000, step_s=0.02, flood=FLOOD).start()
    run.wait_for_step(3)
    rankdeck = open_window()
    notice = rankdeck.window.outcome
    qtbot.waitUntil(lambda: rankdeck.window.header.state.text() == "Training", timeout=WAIT_MS)
    qtbot.waitUntil(lambda: rankdeck.data.series.rank(0).rows >= 5, timeout=WAIT_MS)
    limit_files(run, 1)
    qtbot.waitUntil(notice.isVisible, timeout=WAIT_MS)
    assert notice.title == "Metrics cannot be written"
    assert "could not be written" in notice.text and "Free some space." in notice.text
    header = rankdeck.window.header
    qtbot.waitUntil(lambda: "Metrics cannot be written" in header.rest.full_text, timeout=WAIT_MS)
    assert "left" not in header.rest.full_text
    if folder := os.environ.get("RANKDECK_TEST_PICTURES"):
        qtbot.wait(500)
        rankdeck.window.grab().save(f"{folder}/full-disk.png")
    limit_files(run, None)
    qtbot.waitUntil(lambda: not notice.isVisible(), timeout=WAIT_MS)
    run.stop(now=True)
    qtbot.waitUntil(lambda: rankdeck.window.header.state.text() == "Stopped", timeout=WAIT_MS)
