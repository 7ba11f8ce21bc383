"""The commit coordinator: parts of one checkpoint belong together, whatever comes between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from core.host.commits.coordinator import BUSY, KEPT, CommitCoordinator
from core.protocol.messages import CommitStaged, Position


@dataclass
class Effects:
    """What the coordinator has had done."""

    done: list[tuple[Any, ...]] = field(default_factory=list)

    def open_checkpoint(self, reason: str) -> None:
        self.done.append(("open", reason))

    def answer(self, rank: int, checkpoint: int, folder: str) -> None:
        del folder
        self.done.append(("answer", rank, checkpoint))

    def ask(self, rank: int, reason: str) -> None:
        del reason
        self.done.append(("ask", rank))

    def write_checkpoint(self, checkpoint: int, parts: Mapping[int, CommitStaged]) -> None:
        self.done.append(("write", checkpoint, sorted(parts)))

    def drop_checkpoint(self, checkpoint: int, folder: str, cause: str, *, retry: bool = True) -> None:
        del folder, cause
        self.done.append(("drop" if retry else "leave out", checkpoint))

    def take(self) -> list[tuple[Any, ...]]:
        """What was done since the last call."""
        taken, self.done = self.done, []
        return taken


class Story:
    """A coordinator and its effects, told in short lines."""

    def __init__(self, world_size: int = 2, *, synchronised: bool = True) -> None:
        self.effects = Effects()
        self.commits = CommitCoordinator(world_size, synchronised=synchronised, effects=self.effects)

    def begin(
        self, rank: int, step: int, round_: int = 0, *, join: bool = False, diverged: bool = False
    ) -> list[tuple[Any, ...]]:
        self.commits.begin(rank, step, "test", round_, join, diverged)
        return self.effects.take()

    def opened(self, number: int) -> list[tuple[Any, ...]]:
        self.commits.opened(number, f"checkpoints/{number}")
        return self.effects.take()

    def staged(self, rank: int, number: int, step: int = 10) -> list[tuple[Any, ...]]:
        self.commits.staged(rank, CommitStaged(number, Position(step), []))
        return self.effects.take()

    def committed(self, number: int, step: int) -> None:
        """A whole commit of two ranks in step."""
        self.begin(0, step)
        self.opened(number)
        self.begin(1, step)
        self.staged(0, number, step)
        assert self.staged(1, number, step) == [("write", number, [0, 1])]
        self.commits.written(number)
        assert self.effects.take() == []


def test_all_ranks_at_a_step_get_the_same_checkpoint_and_it_is_written_when_all_have_staged() -> None:
    story = Story()
    assert story.begin(0, 10) == [("open", "test")]
    assert story.begin(1, 10) == []  # the folder is being made
    assert story.opened(1) == [("answer", 0, 1), ("answer", 1, 1)]
    assert story.staged(1, 1) == []
    assert not story.commits.holds({0: 10, 1: 10})
    assert story.staged(0, 1) == [("write", 1, [0, 1])]
    assert story.commits.busy
    story.commits.written(1)
    assert story.commits.holds({0: 10, 1: 10}) and not story.commits.holds({0: 10, 1: 11})
    assert not story.commits.busy


def test_busy_at_a_step_means_busy_for_every_rank_at_that_step() -> None:
    story = Story()
    story.begin(0, 10)
    story.opened(1)
    story.begin(1, 10)
    story.staged(0, 1)
    assert story.begin(0, 20) == [("answer", 0, BUSY)]  # rank 1 still writes its part of step 10
    story.staged(1, 1)
    story.commits.written(1)
    story.effects.take()
    assert story.begin(1, 20) == [("answer", 1, BUSY)]  # free by now, but rank 0 has gone on
    assert story.begin(0, 30) == [("open", "test")]


def test_ranks_that_ask_again_at_their_last_step_end_up_in_one_checkpoint() -> None:
    story = Story()
    story.begin(0, 10)
    story.opened(1)
    story.begin(1, 10)
    story.staged(0, 1)
    assert story.begin(0, 12) == [("answer", 0, BUSY)]
    assert story.begin(0, 12) == [("answer", 0, BUSY)]
    story.staged(1, 1)
    story.commits.written(1)
    assert story.begin(0, 12) == [("open", "test")]
    story.opened(2)
    answers = [story.begin(1, 12), story.begin(1, 12), story.begin(1, 12)]
    assert answers == [[("answer", 1, BUSY)], [("answer", 1, BUSY)], [("answer", 1, 2)]]


def test_a_part_that_could_not_be_written_drops_the_checkpoint_for_all() -> None:
    story = Story()
    story.begin(0, 10)
    story.opened(1)
    story.commits.failed(0, 1, "disk full")
    assert story.effects.take() == [("drop", 1)]
    assert story.begin(1, 10) == [("answer", 1, BUSY)]
    assert story.staged(1, 1) == []  # too late, and harmless
    story.committed(2, 20)


def test_a_folder_that_cannot_be_made_is_a_busy_answer() -> None:
    story = Story()
    story.begin(0, 10)
    story.begin(1, 10)
    story.commits.open_failed("no permission")
    assert story.effects.take() == [("answer", 0, BUSY), ("answer", 1, BUSY), ("drop", BUSY)]
    story.committed(1, 20)


def test_a_manifest_that_cannot_be_written_leaves_the_checkpoint_before() -> None:
    story = Story()
    story.committed(1, 10)
    story.begin(0, 20)
    story.begin(1, 20)
    story.opened(2)
    story.staged(0, 2, 20)
    story.staged(1, 2, 20)
    story.commits.write_failed(2, "disk full")
    assert story.effects.take() == [("drop", 2)]
    assert story.commits.holds({0: 10, 1: 10})


@pytest.mark.parametrize("phase", ["opening", "staging"])
def test_a_rank_that_dies_in_a_commit_drops_it(phase: str) -> None:
    story = Story()
    story.begin(0, 10)
    if phase == "staging":
        story.opened(1)
    story.commits.rank_lost(1)
    assert ("drop", 1 if phase == "staging" else BUSY) in story.effects.take()
    assert not story.commits.busy
    if phase == "opening":
        assert story.opened(1) == [("drop", 1)]  # the folder that came too late


def test_a_rank_that_dies_after_staging_does_not_take_its_part_along() -> None:
    story = Story()
    story.begin(0, 10)
    story.opened(1)
    story.begin(1, 10)
    story.staged(1, 1)
    story.commits.rank_lost(1)
    assert story.effects.take() == []
    assert story.staged(0, 1) == [("write", 1, [0, 1])]
    story.commits.rank_lost(0)
    story.commits.abandon("the attempt ends")
    assert story.effects.take() == []  # being written: it is whole


def test_a_rank_that_passed_a_step_without_joining_ends_that_checkpoint() -> None:
    story = Story()
    story.begin(0, 10)
    story.opened(1)
    assert story.begin(1, 20) == [("drop", 1), ("open", "test")]


def test_independent_ranks_are_asked_to_join_and_may_stand_at_other_steps() -> None:
    story = Story(3, synchronised=False)
    assert story.begin(1, 10) == [("open", "test"), ("ask", 0), ("ask", 2)]
    story.opened(1)
    assert story.begin(0, 13) == [("answer", 0, 1)]
    assert story.begin(1, 20) == [("answer", 1, BUSY)]  # it has its part in this one
    assert story.begin(2, 7) == [("answer", 2, 1)]
    story.staged(0, 1, 13)
    story.staged(1, 1, 10)
    assert story.staged(2, 1, 7) == [("write", 1, [0, 1, 2])]
    story.commits.written(1)
    assert story.commits.holds({0: 13, 1: 10, 2: 7})


def test_who_only_joins_begins_nothing() -> None:
    story = Story(2, synchronised=False)
    assert story.begin(1, 20, 1, join=True) == [("answer", 1, BUSY)]
    assert story.begin(0, 17, 1) == [("open", "test"), ("ask", 1)]
    story.opened(1)
    assert story.begin(1, 20, 1, join=True) == [("answer", 1, 1)]
    assert story.begin(0, 21, 2) == [("answer", 0, BUSY)]  # it has its part; the next round does no harm
    assert story.staged(0, 1, 17) == []
    assert story.staged(1, 1, 20) == [("write", 1, [0, 1])]


def test_parts_of_two_rounds_make_no_checkpoint() -> None:
    story = Story(2, synchronised=False)
    story.begin(0, 17, 1)
    story.opened(1)
    dropped, answer = story.begin(1, 21, 2)
    assert dropped[:2] == ("drop", 1) and answer == ("answer", 1, BUSY)
    assert story.begin(1, 22, 2) == [("open", "test"), ("ask", 0)]


def test_a_long_run_does_not_remember_every_step() -> None:
    story = Story()
    for number in range(1, 60):
        story.committed(number, 10 * number)
    assert len(story.commits._answers) <= 5 and len(story.commits._asked) <= 10


def test_a_rank_that_is_gone_is_carried_so_that_the_others_can_commit() -> None:
    story = Story(3, synchronised=False)
    old = CommitStaged(4, Position(50), [])
    story.commits.carry(1, old)
    assert story.commits.missing == [0, 2]
    assert story.begin(0, 60) == [("open", "test"), ("ask", 2)]
    story.opened(5)
    story.begin(2, 70)
    story.staged(0, 5, 60)
    assert story.staged(2, 5, 70) == [("write", 5, [0, 1, 2])]
    story.commits.written(5)
    assert story.commits.holds({0: 60, 1: 50, 2: 70})


def test_a_rank_that_is_lost_while_its_part_is_written_is_carried_with_that_part() -> None:
    story = Story(2, synchronised=False)
    story.begin(0, 10)
    story.opened(2)
    story.begin(1, 10)
    story.staged(0, 2, 10)
    assert story.staged(1, 2, 10) == [("write", 2, [0, 1])]
    story.commits.carry(1, CommitStaged(1, Position(5), []))
    story.commits.written(2)
    story.begin(0, 20)
    story.opened(3)
    assert story.staged(0, 3, 20) == [("write", 3, [0, 1])]
    story.commits.written(3)
    assert story.commits.holds({0: 20, 1: 10})


def test_a_checkpoint_begun_before_the_loss_was_known_is_completed_by_the_carried_part() -> None:
    story = Story(2, synchronised=False)
    story.begin(0, 10)
    story.opened(2)
    story.staged(0, 2, 10)
    story.commits.carry(1, CommitStaged(1, Position(5), []))
    assert story.effects.take() == [("write", 2, [0, 1])]


def alone() -> Story:
    """Two ranks with a replica group each, which have committed step 10."""
    story = Story(synchronised=False)
    story.begin(0, 10)
    story.opened(1)
    story.begin(1, 10)
    story.staged(0, 1)
    story.staged(1, 1)
    story.commits.written(1)
    story.effects.take()
    return story


def test_the_last_good_part_of_a_diverged_rank_stands_for_it() -> None:
    story = alone()
    story.begin(0, 20)
    story.opened(2)
    assert story.begin(1, 22, join=True, diverged=True) == [("answer", 1, KEPT)]
    assert story.staged(0, 2, 20) == [("write", 2, [0, 1])]
    story.commits.written(2)
    assert story.commits.newest[1].position.step == 10
    assert story.begin(1, 30, diverged=True) == [("answer", 1, KEPT)], "its end"
    assert story.commits.holds({0: 20, 1: 30}) and not story.commits.holds({0: 21, 1: 30})


def test_without_a_good_part_a_diverged_rank_leaves_the_checkpoint_out_and_writes_its_own_at_the_end() -> None:
    story = Story(synchronised=False)
    assert story.begin(1, 5, join=True, diverged=True) == [("answer", 1, KEPT)]
    story.begin(0, 10)
    story.opened(1)
    assert story.begin(1, 10, join=True, diverged=True) == [("leave out", 1), ("answer", 1, KEPT)]
    assert story.begin(1, 12, diverged=True) == [("open", "test"), ("ask", 0)]
    assert story.opened(2) == [("answer", 1, 2)]


def test_between_rounds_no_older_part_stands_for_a_diverged_rank() -> None:
    story = alone()
    story.begin(0, 20, round_=1)
    story.opened(2)
    assert story.begin(1, 20, round_=1, join=True, diverged=True) == [("leave out", 2), ("answer", 1, KEPT)]
