"""Counters, schedule and seeds of a rank that goes on with other replica groups than before."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="imports the update rule")

from core.protocol.messages import RankStart
from workers.optim.lr_schedule import Schedule, saved_schedule
from workers.optim.optimizer import Optimization
from workers.training.counters import fresh_seed, taken_up

SAVED: dict[str, Any] = {
    "step": 40,
    "samples_seen": 400,
    "chunks_done": 13,
    "merges_done": 3,
    "merge_every_chunks": 4,
    "chunks_alone": 1,
    "val_step": 32,
    "val_loss": 2.5,
}


def test_nothing_changes_where_nothing_has_changed() -> None:
    assert taken_up(SAVED, None, 0, 4) == SAVED
    assert taken_up(SAVED, RankStart(40, copy="1"), 1, 4) == SAVED


def test_another_s_copy_is_known_by_its_loss_and_has_learned_nothing_alone() -> None:
    start = RankStart(60, copy="1", same_groups=False, samples_seen=900)
    values = taken_up(SAVED, start, 0, 4)
    assert (values["step"], values["samples_seen"], values["val_loss"], values["chunks_alone"]) == (60, 900, 2.5, 0)


def test_an_average_was_never_measured() -> None:
    values = taken_up(SAVED, RankStart(60, copy="average", same_groups=False), 0, 4)
    assert values["val_loss"] is None and values["chunks_alone"] == 0


@pytest.mark.parametrize(
    ("same_groups", "every", "chunks"), [(True, 4, 13), (False, 4, 12), (True, 10, 30), (True, None, 0)]
)
def test_rounds_of_merging_are_counted_from_the_newest(same_groups: bool, every: int | None, chunks: int) -> None:
    values = taken_up(SAVED, RankStart(40, copy="0", same_groups=same_groups), 0, every)
    assert (values["chunks_done"], values["merges_done"]) == (chunks, 3)
    assert every is None or chunks // every == 3, "no round is due at once, or due again"


def test_samples_of_the_round_so_far_stay_the_same() -> None:
    saved = {**SAVED, "dial": {"round": 2, "next_step": 50, "samples_at": 380}}
    values = taken_up(saved, RankStart(40, copy="1", same_groups=False, samples_seen=1000), 2, None)
    assert values["samples_seen"] - values["dial"]["samples_at"] == 20
    assert values["dial"]["round"] == 2


def test_seeds_differ_by_rank_and_step() -> None:
    assert fresh_seed(5, 0, 0) == 6, "as at the very first start"
    assert len({fresh_seed(5, rank, step) for rank in range(4) for step in range(200)}) == 800


ASKED = (None, 2)
RULE = Optimization(warmup_steps=10, min_lr_ratio=0.1)


def rates(schedule: Schedule, steps: range) -> list[float]:
    return [RULE.lr(schedule.place(step), schedule.length, 1.0) for step in steps]


def test_an_undisturbed_schedule_is_the_rule_itself() -> None:
    schedule = Schedule.new(100, ASKED)
    assert rates(schedule, range(1, 101)) == [RULE.lr(step, 100, 1.0) for step in range(1, 101)]
    assert schedule.resumed(Schedule.new(100, ASKED), 37) == schedule
    assert saved_schedule(schedule.as_dict()) == schedule


@pytest.mark.parametrize("ends", [60, 250])
def test_with_fewer_or_more_steps_left_the_rate_goes_on_from_where_it_stands(ends: int) -> None:
    before = Schedule.new(100, ASKED)
    after = before.resumed(Schedule.new(ends, ASKED), 40)
    old, new = rates(before, range(40, 41)), rates(after, range(40, ends + 1))
    assert new[0] == old[0], "no jump"
    assert new[-1] == pytest.approx(0.1), "and it ends where it was to end"
    assert new == sorted(new, reverse=True)
    assert after.ends == ends
    again = after.resumed(Schedule.new(ends, ASKED), 50)
    assert again == after, "what was changed once is not changed by a further resume"


def test_it_can_be_changed_again_and_again() -> None:
    schedule = Schedule.new(100, ASKED)
    last = None
    for step, ends in ((30, 70), (50, 90), (80, 82), (81, 400), (400, 400)):
        schedule = schedule.resumed(Schedule.new(ends, ASKED), step)
        rate = rates(schedule, range(step, step + 1))[0]
        assert last is None or rate <= last + 1e-12
        last = rate
    assert last == pytest.approx(0.1)


def test_the_warm_up_goes_on_too() -> None:
    after = Schedule.new(100, ASKED).resumed(Schedule.new(55, ASKED), 5)
    assert rates(after, range(5, 11)) == pytest.approx([0.5, 0.69, 0.88, 1.0, 1.0, 1.0], abs=0.02)


def test_a_new_limit_is_a_new_schedule() -> None:
    planned = Schedule.new(200, (200, None))
    assert Schedule.new(100, (100, None)).resumed(planned, 100) == planned


def test_nothing_left_is_no_division_by_nothing() -> None:
    schedule = Schedule.new(40, ASKED).resumed(Schedule.new(30, ASKED), 30)
    assert schedule.place(30) == pytest.approx(30.0)
