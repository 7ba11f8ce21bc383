"""The main job through the window, for real: tick, pick, Start, watch, Stop, Resume; the curve and the ledger go on."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from core.run_folder.notes import read_notes
from core.run_folder.store import RunStore
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into, unfold

pytestmark = [
    OFFSCREEN_NOISE,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="trains for real, and there is no torch"),
]
TRAIN_MS = 120_000
FORM = {
    "steps": "60",
    "batch_size": "4",
    "seq_len": "16",
    "n_layer": "1",
    "n_head": "2",
    "n_embd": "16",
    "eval_every": "10",
    "dataset_chunk_size": "32",
    "samples_per_block": "320",
}


def set_up(rankdeck: Rankdeck, text: Path, qtbot: QtBot, **more: str) -> None:
    sheet = rankdeck.window.new_run
    unfold(sheet.form)
    sheet.data.line.setText(str(text))  # keyClicks knows no letters outside ASCII
    sheet.data.line.textEdited.emit(str(text))
    for name, value in {**FORM, **more}.items():
        type_into(rankdeck, name, value, qtbot)
    for row in sheet.devices.rows():
        if row.box.isChecked() != (row.device.uuid in ("cpu:0", "cpu:1")):
            row.box.click()


def state_of(rankdeck: Rankdeck) -> str:
    return rankdeck.data.state.state if rankdeck.data.state is not None else ""


def steps_shown(rankdeck: Rankdeck, rank: int) -> list[int]:
    series = rankdeck.data.series.rank(rank)
    return [int(step) for step in series.columns["step"].read(0, series.rows)] if series.rows else []


def test_start_stop_resume_to_the_end(open_window: OpenWindow, qtbot: QtBot, tmp_path: Path) -> None:
    text = tmp_path / "ein Täxt.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 1500, encoding="utf-8", newline="\n")
    rankdeck = open_window()
    window, actions = rankdeck.window, rankdeck.window.actions_
    set_up(rankdeck, text, qtbot, steps="4000", checkpoint_every_steps="20")
    qtbot.keyClicks(window.new_run.run_name, "first try")
    window.new_run.mode.radios["ddp"].click()
    qtbot.waitUntil(actions.start.isEnabled)
    actions.start.trigger()
    assert actions.start.text() == "Starting…", "something is seen to happen at once"
    assert not actions.start.isEnabled() and "starting a run" in actions.start.toolTip()
    qtbot.waitUntil(lambda: len(steps_shown(rankdeck, 1)) >= 30, timeout=TRAIN_MS)
    assert rankdeck.data.state is not None and rankdeck.data.state.mode == "ddp"
    assert rankdeck.data.state.devices == ("cpu:0", "cpu:1")
    assert window.plots.loss.chart.grab().toImage().pixelColor(0, 0).isValid()

    actions.stop.trigger()
    assert actions.stop.text() == "S&top now"
    qtbot.waitUntil(lambda: state_of(rankdeck) == "stopped", timeout=TRAIN_MS)
    run_dir = rankdeck.showing.run_dir
    assert run_dir is not None
    store = RunStore.open(run_dir)
    assert read_notes(run_dir).name == "first try" and window.new_run.run_name.text() == "", "the next run has its own"
    assert window.notice.isHidden(), window.notice.text
    stopped_at = store.state().step
    done_before = len(json.loads(store.ledger.read_text(encoding="utf-8"))["completed_chunks"])
    assert stopped_at >= 30 and done_before > 0 and not actions.stop.isEnabled()

    actions.resume.trigger()
    dialog = rankdeck.resuming.dialog
    assert dialog is not None
    qtbot.waitUntil(dialog.go.isEnabled, timeout=10_000)
    assert f"step {stopped_at:,}" in dialog.message.toPlainText()
    assert re.search(r"[1-9][\d,]* of its 3,918 samples are trained", dialog.message.toPlainText())
    dialog.form.steps.setText(str(stopped_at + 40))
    dialog.form.steps.textEdited.emit(dialog.form.steps.text())
    qtbot.waitUntil(
        lambda: dialog.go.isEnabled() and f"{stopped_at + 40:,}" in dialog.message.toPlainText(), timeout=10_000
    )
    dialog.go.click()
    qtbot.waitUntil(lambda: state_of(rankdeck) == "finished", timeout=TRAIN_MS)
    qtbot.waitUntil(lambda: steps_shown(rankdeck, 0)[-1:] == [stopped_at + 40], timeout=10_000)
    assert rankdeck.resuming.dialog is None
    assert steps_shown(rankdeck, 0) == list(range(1, stopped_at + 41)), "the curve goes on, no step missing or twice"
    assert len(json.loads(store.ledger.read_text(encoding="utf-8"))["completed_chunks"]) > done_before
    snapshot = rankdeck.ledger.snapshot
    qtbot.waitUntil(lambda: rankdeck.ledger.snapshot is not None and rankdeck.ledger.snapshot.checkpoint is not None)
    assert snapshot is not None and window.tabs.samples.text.toPlainText().startswith("step ")
    qtbot.waitUntil(lambda: window.tabs.log.source.count() == 4)
