"""What is wrong about a mode is marked where it stands before anything starts; the impossible is not offered."""

from __future__ import annotations

import json

import pytest

from core.launch.deepspeed import own_text
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_a_deepspeed_configuration_that_contradicts_the_run_is_marked(open_sheet: OpenWindow) -> None:
    rankdeck = open_sheet()
    mode, start = rankdeck.window.new_run.mode, rankdeck.window.actions_.start
    mode.radios["zero"].click()
    config = {**json.loads(own_text(1)), "train_batch_size": 7}
    mode.set_deepspeed(json.dumps(config, indent=2))
    assert mode.deepspeed_problem.isVisible() and "train_batch_size" in mode.deepspeed_problem.text()
    assert not start.isEnabled() and "train_batch_size" in start.toolTip()
    mode.set_deepspeed("")
    assert not mode.deepspeed_problem.isVisible() and start.isEnabled()


def test_merge_rounds_are_not_offered_beside_the_dial(open_sheet: OpenWindow) -> None:
    rankdeck = open_sheet()
    sheet = rankdeck.window.new_run
    sheet.mode.radios["independent"].click()
    rounds = sheet.mode.merging.rows["merge_every_chunks"]
    rounds.set_text("4")
    rounds.edited.emit("merge_every_chunks")
    assert "--merge-every-chunks 4" in sheet.summary.command.text()
    sheet.mode.sync_interval.slider.setValue(3)
    assert not rounds.editor.isVisible()
    command = sheet.summary.command.text()
    assert "--sync-every 10" in command and "--merge-every-chunks" not in command
