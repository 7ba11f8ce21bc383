"""A device that the others wait for: the window says which and why, and its button leads to load balancing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.host_fixture import MakeRun
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
WAIT_MS = 60_000


def test_the_card_names_the_device_and_its_button_resumes_with_load_balancing(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    run = make_run(runs_dir=runs_dir).behave(steps=100_000, step_s=0.02, wait_s=0.0).behave(0, wait_s=0.01).start()
    run.wait_for_step(3)
    rankdeck = open_window()
    window, card = rankdeck.window, rankdeck.window.outcome
    qtbot.waitUntil(card.isVisible, timeout=WAIT_MS)
    assert card.title == "CPU 1 slows down the other devices"
    text = card.text.replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith("CPU 0 waits 50 % of each step for CPU 1.") and "--" not in text
    assert card.balance.isVisible() and not card.show_log.isVisible()
    waiting, late = window.plots.device_rows.rows
    qtbot.waitUntil(lambda: "Waits" in waiting.warning.text(), timeout=WAIT_MS)
    assert "for CPU 1." in waiting.warning.text() and late.warning.text() == ""
    if folder := os.environ.get("RANKDECK_TEST_PICTURES"):
        qtbot.wait(1000)
        window.grab().save(f"{folder}/straggler.png")

    card.balance.click()
    qtbot.waitUntil(lambda: rankdeck.control.dialog is not None, timeout=WAIT_MS)
    dialog = rankdeck.control.dialog
    assert dialog is not None and window.header.state.text() == "Stopped"
    assert dialog.form.asked() == (str(run.run_dir), {"mode": "ddp", "balance": "measured"})
    assert dialog.form.mode.currentText() == "DDP with load balancing"
    qtbot.waitUntil(dialog.go.isEnabled, timeout=WAIT_MS)
    dialog.reject()
    qtbot.waitUntil(lambda: rankdeck.control.dialog is None)
    assert not card.isVisible(), "a run that was stopped is not slowed down by anything"
