"""What is wrong about a mode is marked where it stands before anything starts; the impossible is not offered."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from core.launch.deepspeed import own_text
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into, unfold

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


def test_an_outer_optimizer_with_plain_averaging_is_marked(open_sheet: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    sheet, start = rankdeck.window.new_run, rankdeck.window.actions_.start
    sheet.mode.radios["independent"].click()
    sheet.mode.sync_interval.slider.setValue(3)
    unfold(sheet.form)
    method = sheet.form.rows["sync_method"].editor
    assert isinstance(method, QComboBox) and method.isVisible()
    method.setCurrentIndex(method.findData("average"))
    type_into(rankdeck, "outer_lr", "0.7", qtbot)
    row = sheet.form.rows["outer_lr"]
    assert "no outer optimizer" in row.problem.text() and not row.problem.isHidden() and not start.isEnabled()
    sheet.mode.radios["ddp"].click()
    assert start.isEnabled() and "outer" not in sheet.summary.command.text(), "it means nothing in this mode"


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


def test_two_slots_of_the_processor_have_nothing_to_move(open_sheet: OpenWindow) -> None:
    mode = open_sheet().window.new_run.mode
    mode.radios["zero"].click()
    box = mode.zero.rows["offload_optimizer"].editor
    assert box.isVisible() and not box.isEnabled() and "CPU devices" in box.toolTip()
    mode.radios["independent"].click()
    assert mode.sync_interval.measure.isEnabled() and "five seconds" in mode.sync_interval.price.text()
