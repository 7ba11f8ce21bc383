"""A rank that spills into the computer's memory: one click in the window resumes it with half the micro-batch."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from core.recipes.outside_code import known_code_file
from tests.helpers.host_fixture import FakeRun, MakeRun
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
WAIT_MS = 60_000
# As `core.host.watches.spill_watch` reports it; no card of a test machine spills.
ALERT = {
    "event": "alert",
    "ts": 0.0,
    "rank": 1,
    "attempt": 1,
    "kind": "memory_spill",
    "ranks": [1],
    "spilled_bytes": 3 << 30,
    "title": "GPU 1 is full and uses the computer's memory",
    "cause": "3.0 GiB of its process lie in the computer's memory, far from the GPU. Steps take many times longer.",
    "next_step": "Stop the run and resume it with micro-batch 1 and accumulation 2; the global batch stays 4.",
    "micro_batch": 1,
    "grad_accum_steps": 2,
}


def alerted(make_run: MakeRun, runs_dir: Path, **config: Any) -> FakeRun:
    line = json.dumps({**ALERT, "ts": time.time()}) + "\n"
    run = make_run(runs_dir=runs_dir, **config).behave(steps=100_000, step_s=0.02).behave(1, raw=[line]).start()
    run.wait_for_step(3)
    return run


def test_trust_in_a_runs_code_is_asked_for_not_refused(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path, tmp_path: Path
) -> None:
    run = alerted(make_run, runs_dir, log_file=str(tmp_path / "copy.jsonl"))
    known_code_file().unlink()  # as if it had been started elsewhere
    rankdeck = open_window()
    qtbot.waitUntil(rankdeck.window.outcome.isVisible, timeout=WAIT_MS)
    run.behave(1, raw=[])
    rankdeck.window.outcome.halve.click()
    qtbot.waitUntil(lambda: rankdeck.resuming.dialog is not None, timeout=WAIT_MS)
    dialog = rankdeck.resuming.dialog
    assert dialog is not None
    qtbot.waitUntil(dialog.form.trust.isVisible, timeout=WAIT_MS)
    assert "copy.jsonl" in dialog.message.toPlainText() and not dialog.go.isEnabled()
    dialog.form.trust.click()
    qtbot.waitUntil(dialog.go.isEnabled, timeout=WAIT_MS)
    dialog.go.click()
    qtbot.waitUntil(lambda: run.store.state().attempt == 2 and run.store.state().is_live, timeout=WAIT_MS)
    assert (run.store.config().batch_size, run.store.config().grad_accum_steps) == (1, 2)
    qtbot.waitUntil(lambda: rankdeck.resuming.dialog is None, timeout=WAIT_MS)
    run.stop().end()


def test_one_click_resumes_with_half_the_micro_batch(
    make_run: MakeRun, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    run = alerted(make_run, runs_dir)
    rankdeck = open_window()
    card = rankdeck.window.outcome
    qtbot.waitUntil(card.isVisible, timeout=WAIT_MS)
    assert card.title == ALERT["title"]
    assert card.halve.isVisible() and card.halve.text() == "Resume with micro-batch 1"
    assert not card.balance.isVisible() and not card.show_log.isVisible()
    run.behave(1, raw=[])
    card.halve.click()
    qtbot.waitUntil(lambda: run.store.state().attempt == 2 and run.store.state().is_live, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: not card.isVisible(), timeout=WAIT_MS)
    config = run.store.config()
    assert (config.batch_size, config.grad_accum_steps) == (1, 2)
    run.stop().end()
