"""Tuning: the reasons against it, its introduction, and the dialog's table."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from app.new_run.tune_controller import TRAINING, UNFIXED, about_text, why_not_tunable
from app.new_run.tune_dialog import TuneDialog
from core.config.mode import Mode
from tests.unit.core.measure.tune.made import RUN, failed, result, run


def test_a_draft_says_why_it_cannot_be_tuned() -> None:
    assert why_not_tunable(RUN, is_training=False) == ""
    assert why_not_tunable(RUN, is_training=True) == TRAINING
    assert why_not_tunable(None, is_training=False) == UNFIXED
    script = replace(RUN, recipe=replace(RUN.recipe, self_contained=True))
    assert why_not_tunable(script, is_training=True).startswith("Your script chooses its own batches")
    by_deepspeed = replace(RUN, choice=replace(RUN.choice, engine="deepspeed"))
    why = why_not_tunable(by_deepspeed, is_training=False)
    assert why.startswith("DeepSpeed") and "--" not in why


def test_the_table_marks_the_fastest_and_says_why_others_have_no_figures(qtbot: QtBot) -> None:
    slow, fast, short = result(2), result(16, 150.0), failed(8, "out_of_memory", "Rank 1: No memory.")
    dialog = TuneDialog(about_text(RUN))
    qtbot.addWidget(dialog)
    dialog.show_progress("Trying", 0.5, (slow, fast, short), fast)
    rows = [dialog.table.topLevelItem(number) for number in range(dialog.table.topLevelItemCount())]
    assert [row.text(5) for row in rows if row is not None] == ["measured", "fastest", "out of memory"]
    assert [row.font(0).bold() for row in rows if row is not None] == [False, True, False]
    assert rows[2] is not None and rows[2].toolTip(0) == "Rank 1: No memory."


def test_the_introduction_names_the_micro_batches() -> None:
    assert "The global batch stays 32, so micro-batches up to 16 can be tried." in about_text(RUN)
    assert "The global batch of each device stays 32" in about_text(run(Mode.INDEPENDENT))
