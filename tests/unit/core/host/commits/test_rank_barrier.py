"""Ranks that wait for the host: committed together and merged; and which weights are the run's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, call

import pytest

from core.checkpoints.store import Checkpoint
from core.host.commits.rank_barrier import ASK_AGAIN_S, RankBarrier
from core.protocol.messages import Merge, MergeDone, RankDone, StagedFile
from core.protocol.server import Connection
from tests.helpers.resolved_run import made_ranks

FOLDER = Path("checkpoints") / "7"


def checkpoint(*names: str, diverged: tuple[int, ...] = ()) -> Checkpoint:
    files = tuple(StagedFile(name, 1, "") for name in names)
    return Checkpoint(7, FOLDER, 20, 0.0, 2, "independent", None, {}, files, (), diverged)


def merged(file: str) -> MergeDone:
    return MergeDone(7, file, "average", {})


class Story:
    """Two independent ranks and the commits of their attempt, as far as the barrier looks at them."""

    def __init__(self, self_contained: bool = False) -> None:
        self.ranks = made_ranks("independent", 2, self_contained=self_contained)
        self.coordinator = SimpleNamespace(busy=False, missing=[0, 1], held=False)
        self.coordinator.holds = lambda _: self.coordinator.held
        self.commits: Any = Mock(coordinator=self.coordinator, newest=None, retry_at=None)
        self.barrier = RankBarrier(self.ranks, self.commits)
        self.sent: list[tuple[int, Any]] = []
        for rank in self.ranks:
            rank.connection = cast(Connection, SimpleNamespace(send=partial(self._take, rank.number)))

    def _take(self, rank: int, message: Any) -> None:
        self.sent.append((rank, message))

    def done(self, *numbers: int, step: int = 20) -> None:
        for number in numbers:
            self.ranks[number].done = RankDone(step, True)

    def committed(self) -> None:
        self.coordinator.held, self.commits.newest = True, checkpoint("weights_rank0.safetensors")

    @property
    def asked(self) -> int:
        return self.commits.ask_missing.call_count


def test_while_a_rank_trains_nothing_is_due() -> None:
    story = Story()
    story.done(0)
    assert story.barrier.step(100.0) == (False, "") and story.asked == 0


def test_all_that_wait_are_committed_and_asked_again_only_after_a_while() -> None:
    story = Story()
    story.done(0, 1)
    assert story.barrier.step(100.0) == (False, "saving")
    assert story.commits.ask_missing.mock_calls == [call("every rank waits")]
    story.coordinator.busy = True
    assert story.barrier.step(100.0 + ASK_AGAIN_S) == (False, "") and story.asked == 1
    story.coordinator.missing = []
    assert story.barrier.step(200.0) == (False, "") and story.asked == 1, "every rank has answered"
    story.coordinator.missing = [1]
    assert story.barrier.step(200.0) == (False, "saving") and story.asked == 2


def test_the_last_merge_comes_before_the_end() -> None:
    story = Story()
    story.done(0, 1)
    story.committed()
    assert story.barrier.step(100.0) == (False, "merging")
    assert story.sent == [(0, Merge(7, str(FOLDER)))]
    assert story.barrier.step(101.0) == (False, "")
    story.barrier.merge_done(story.ranks[1], merged("merged.safetensors"))
    story.barrier.merge_done(story.ranks[0], merged("../merged.safetensors"))
    assert story.barrier.step(102.0) == (False, ""), "only rank 0 merges, and only into the checkpoint"
    story.barrier.merge_done(story.ranks[0], merged("merged.safetensors"))
    assert story.barrier.step(103.0) == (True, "")
    assert story.barrier.model(None) == (FOLDER / "merged.safetensors",)
    story.done(1, step=30)
    assert story.barrier.step(104.0) == (False, "merging"), "it has trained since"


def test_a_program_of_its_own_has_saved_what_it_wanted() -> None:
    story = Story(self_contained=True)
    story.done(0, 1)
    assert story.barrier.step(100.0) == (True, "") and story.asked == 0


@pytest.mark.parametrize(
    ("newest", "resumed", "names"),
    [
        (None, None, ()),
        (checkpoint("rank0.json"), None, ()),
        (checkpoint("weights.safetensors", "rank0.json"), checkpoint("weights_old"), ("weights.safetensors",)),
        (None, checkpoint("weights_rank1", "weights_rank0"), ("weights_rank0",)),
        (checkpoint("weights_shard1", "weights_shard0"), None, ("weights_shard0", "weights_shard1")),
        (checkpoint("weights.safetensors", diverged=(0,)), None, ()),
    ],
)
def test_which_weights_are_exported(newest: Any, resumed: Any, names: tuple[str, ...]) -> None:
    story = Story()
    story.commits.newest = newest
    assert story.barrier.model(resumed) == tuple(FOLDER / name for name in names)
