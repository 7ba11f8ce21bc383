"""Tuning as text."""

from __future__ import annotations

from dataclasses import replace

from app.new_run.tune_text import (
    SCRIPT,
    TRAINING,
    UNFIXED,
    about_text,
    trial_lines,
    why_not_tunable,
)
from core.config.mode import Mode
from core.measure.tune.search import Result
from core.measure.tune.tuned import COLUMNS
from tests.unit.core.measure.tune.made import RUN, START, result, run


def test_a_draft_says_why_it_cannot_be_tuned() -> None:
    assert why_not_tunable(RUN, is_script=False, is_training=False) == ""
    assert why_not_tunable(RUN, is_script=False, is_training=True) == TRAINING
    assert why_not_tunable(None, is_script=False, is_training=False) == UNFIXED
    assert why_not_tunable(None, is_script=True, is_training=True) == SCRIPT
    by_deepspeed = replace(RUN, choice=replace(RUN.choice, engine="deepspeed"))
    why = why_not_tunable(by_deepspeed, is_script=False, is_training=False)
    assert why.startswith("DeepSpeed") and "--" not in why


def test_the_table_marks_the_fastest_and_says_why_others_have_no_figures() -> None:
    slow, fast = result(START), result(START.in_micro_batches(16), 150.0, "gloo")
    failed = Result(START.in_micro_batches(8), "out_of_memory", need_bytes=1 << 30, cause="Rank 1: No memory.")
    lines = trial_lines((slow, fast, failed), fast)
    assert all(len(line.cells) == len(COLUMNS) for line in lines)
    assert lines[0].cells == ("2", "8", "shared memory", "off", "–", "–", "320 ms", "100 samples/s", "measured")
    assert lines[1].is_best and lines[1].cells[-1] == "fastest" and lines[1].cells[2] == "gloo"
    assert lines[2].tip == "Rank 1: No memory." and lines[2].tone == "warning"
    assert lines[2].cells[5:] == ("1.0 GiB", "–", "–", "out of memory")


def test_what_is_tried_is_said_before() -> None:
    assert "The global batch stays 32, so micro-batches up to 16 can be tried." in about_text(RUN)
    assert "The global batch of each device stays 32" in about_text(run(Mode.INDEPENDENT))
