"""Memory strip of New run with the real probe: a verdict, a click on what makes the run fit, time and advice."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.draft.memory_text import NO_BREAK
from core.measure.estimate.probe import known_figures
from core.measure.estimate.steps import time_is_known
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.slow, pytest.mark.timeout(400)]
PROBED_MS = 240_000
SOON_MS = 20_000


def test_a_remedy_sets_the_fields_and_the_run_fits(
    open_sheet: OpenWindow,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path_factory.mktemp("home")))
    rankdeck = open_sheet()
    window, sheet = rankdeck.window, rankdeck.window.new_run
    strip = sheet.summary.memory
    sheet.devices.select(["cpu:0", "cpu:1"])
    sheet.mode.radios["ddp"].click()  # auto is independent on Windows
    for name, text in (("n_layer", "2"), ("n_embd", "64"), ("seq_len", "64"), ("batch_size", "2")):
        type_into(rankdeck, name, text, qtbot)
    qtbot.waitUntil(lambda: strip.verdict.text() == "Weights fit", timeout=SOON_MS)
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)  # it never waits for the estimate
    qtbot.waitUntil(lambda: strip.verdict.text() == "Fits", timeout=PROBED_MS)
    assert (
        strip.detail.full_text == "CPU 0 and CPU 1 share this computer's memory." and "GiB of" in strip.figure.full_text
    )

    type_into(rankdeck, "batch_size", str(1 << 19), qtbot)
    qtbot.waitUntil(lambda: strip.verdict.text() == "Does not fit", timeout=SOON_MS)
    assert window.actions_.start.isEnabled()
    smaller = next(button for button in strip.remedies.buttons if button.text().startswith("Micro-batch"))
    qtbot.mouseClick(smaller, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: strip.verdict.text() == "Fits", timeout=SOON_MS)
    latest = rankdeck.drafting.latest
    assert latest is not None and latest.run is not None
    batch = latest.run.batch
    assert batch.micro < 1 << 19 and batch.global_ == 2 << 19
    assert known_figures(latest.run) is not None  # a run that is started now has a prediction

    type_into(rankdeck, "batch_size", "2", qtbot)
    qtbot.waitUntil(lambda: f"a{NO_BREAK}step" in strip.time.text(), timeout=PROBED_MS)
    assert "× one device".replace(" ", NO_BREAK) in strip.time.text()
    assert strip.advice.text().startswith("Use ")
    latest = rankdeck.drafting.latest
    assert latest is not None and latest.run is not None
    assert time_is_known(latest.run)


def test_a_sheet_that_closes_leaves_the_cores_to_the_run(
    open_sheet: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path_factory.mktemp("home")))
    rankdeck = open_sheet()
    memory = rankdeck.drafting.memory
    qtbot.waitUntil(lambda: memory.is_measuring, timeout=SOON_MS)
    latest = rankdeck.drafting.latest
    assert latest is not None and latest.run is not None
    rankdeck.window.actions_.new_run.setChecked(False)
    qtbot.waitUntil(lambda: not memory.is_measuring, timeout=PROBED_MS)
    assert known_figures(latest.run) is None, "the probe was ended, or never begun"
