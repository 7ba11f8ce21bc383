"""Room: what the estimate says is too large is not tried."""

from __future__ import annotations

from dataclasses import replace

from core.config.mode import Mode
from core.estimate.free import Free
from core.tune.room import Room
from tests.unit.core.estimate.made import BASELINES, FIGURES, MB
from tests.unit.core.tune.made import RUN, START, run

LARGER = START.in_micro_batches(16).applied(RUN)


def test_a_trial_may_take_four_fifths_of_what_is_free() -> None:
    needs = Room(FIGURES, BASELINES, Free()).need_bytes(RUN, LARGER)
    assert needs is not None and needs > 600 * MB
    assert Room(FIGURES, BASELINES, Free(ram=10 * needs)).shortage(RUN, LARGER) == ""
    short = Room(FIGURES, BASELINES, Free(ram=2 * needs)).shortage(RUN, LARGER)  # two ranks share it
    assert "more than 80 % of the" in short and "free in this machine's memory" in short
    assert Room(FIGURES, BASELINES, Free()).shortage(RUN, LARGER) == ""  # nothing is known of what is free


def test_without_figures_nothing_larger_is_tried() -> None:
    room = Room(replace(FIGURES, step_lines=None), BASELINES, Free(ram=1 << 50))
    assert room.need_bytes(RUN, LARGER) is None
    assert "not known" in room.shortage(RUN, LARGER)
    assert room.shortage(RUN, RUN) == ""


def test_without_checkpointing_the_figures_without_it_count() -> None:
    stored = run(options={"grad_checkpointing": True})
    off = replace(START, checkpointing=False).applied(stored)
    room = Room(FIGURES, BASELINES, Free(ram=100_000 * MB))
    assert "not known" in room.shortage(stored, off)
    assert replace(room, stored=FIGURES).shortage(stored, off) == ""
    assert room.shortage(stored, stored) == ""
    assert room.shortage(run(Mode.FSDP), run(Mode.FSDP)) == ""
