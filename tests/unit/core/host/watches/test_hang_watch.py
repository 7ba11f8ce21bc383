"""When ranks are late, and when they are not: on a clock that the test winds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.host.rank_processes import RankProcess
from core.host.ranks import Rank
from core.host.states import AttemptPhase
from core.host.watches.hang_watch import HangResponse, HangWatch
from core.host.watches.script_watches import OwnCopies
from core.protocol.messages import RankDone
from core.protocol.server import Connection
from tests.helpers.resolved_run import made_ranks

START_S = 180.0


class Story:
    """Two ranks that train, and the clock."""

    def __init__(self, mode: str = "independent", limit_s: float | None = None, *, is_script: bool = False) -> None:
        self.ranks, self.now = made_ranks(mode, 2, self_contained=is_script), 100.0
        if is_script:
            self.ranks.run = replace(self.ranks.run, backend="")
        self.hangs: list[list[int]] = []
        self.overs = 0
        self.held = False
        self.stopped: set[int] = set()
        self.watch = HangWatch(
            self.ranks, limit_s, cast(HangResponse, self), lambda: self.held, lambda pid: pid in self.stopped
        )
        for rank in self.ranks:
            hello = SimpleNamespace(pid=1000 + rank.number)
            rank.connection = cast(Connection, SimpleNamespace(hello=hello))
            rank.phase = "ready"

    def begin(self, late: Sequence[Rank], silent_s: float) -> None:
        assert silent_s == max(self.watch.silent_s(rank) for rank in late)
        self.hangs.append([rank.number for rank in late])

    def over(self) -> None:
        self.overs += 1

    def step(self, *numbers: int) -> None:
        for rank in (self.ranks[number] for number in numbers):
            self.watch.heard(rank, self.now, is_step=True)
            rank.note_step({"step": rank.step + 1})

    def steps(self, *numbers: int) -> None:
        for _ in range(5):
            self.step(*numbers)
            self.wait(1)

    def message(self, number: int, phase: str) -> None:
        self.watch.heard(self.ranks[number], self.now)
        self.ranks[number].phase = phase

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.watch.tick(self.now, AttemptPhase.TRAINING)


def test_a_rank_that_falls_silent_is_named_once_and_when_it_is_back_it_is_over() -> None:
    story = Story()
    story.steps(0, 1)
    story.wait(50)
    story.step(0)
    story.wait(9)
    assert story.hangs == []
    story.wait(1)
    assert story.hangs == [[1]]
    story.wait(30)
    assert story.hangs == [[1]] and story.overs == 0
    story.step(0, 1)
    story.wait(1)
    assert story.overs == 1
    story.wait(200)
    assert story.hangs[1:] == [[0], [0, 1]], "what is silent again is said again; rank 1's limit has grown"


def test_of_ranks_that_wait_for_each_other_all_have_to_be_late() -> None:
    story = Story("ddp")
    story.steps(0, 1)
    for _ in range(100):
        story.wait(1)
        story.step(0)
    assert story.hangs == []  # in local SGD the faster one waits for the slower one
    story.wait(61)
    assert story.hangs == [[0, 1]]


def test_an_evaluation_or_a_checkpoint_may_take_long_and_is_no_pause() -> None:
    for phase in ("evaluating", "saving"):
        story = Story("ddp")
        story.steps(0, 1)
        story.message(0, phase)
        story.message(1, phase)
        story.wait(500)
        assert story.hangs == []
        story.steps(0, 1)
        story.wait(61)
        assert len(story.hangs) == 1


def test_a_suspended_process_is_not_waited_for_whatever_it_was_doing() -> None:
    story = Story("ddp")
    story.steps(0, 1)
    story.message(0, "evaluating")
    story.message(1, "saving")
    story.stopped = {1001}
    story.wait(60)
    assert story.hangs == []
    story.wait(1)
    assert story.hangs == [[1]]


def test_a_script_is_watched_once_it_has_made_steps() -> None:
    story = Story()
    for number in (0, 1):
        story.message(number, "running")
    story.wait(500)
    assert story.hangs == []  # it may load for long
    story.message(1, "computing")
    story.steps(0)
    story.wait(61)
    assert story.hangs == [[0]]  # the other one has never printed a step, and may never


def test_a_script_that_computes_may_be_silent_for_longer() -> None:
    story = Story()
    story.message(0, "running")
    story.steps(0)
    story.message(0, "computing")
    story.wait(600)
    assert story.hangs == []
    story.wait(1)
    assert len(story.hangs) == 1


def test_who_has_not_begun_or_is_done_is_not_silent() -> None:
    story = Story()
    story.message(0, "ready")
    story.steps(1)
    story.ranks[1].done = RankDone(5, True)
    story.wait(500)
    assert story.hangs == []


def test_the_first_step_of_all_tells_how_long_a_step_may_take() -> None:
    story = Story()
    story.message(0, "ready")
    story.wait(100)  # it compiles
    story.steps(0)
    story.wait(198)
    assert story.hangs == []
    story.wait(2)
    assert story.hangs == [[0]]


def test_a_computer_that_slept_has_not_fallen_silent() -> None:
    story = Story()
    story.steps(0, 1)
    story.now += 8 * 3600
    story.step(0)  # heard before the first look
    story.wait(58)
    assert story.hangs == []
    story.wait(3)
    assert story.hangs[0] == [1]


def test_while_the_disk_holds_the_ranks_back_none_is_late() -> None:
    story = Story()
    story.steps(0, 1)
    story.held = True
    story.wait(500)
    story.held = False
    story.wait(58)
    assert story.hangs == []


def test_a_limit_that_a_person_has_set() -> None:
    story = Story(limit_s=5.0)
    story.step(0, 1)
    story.wait(5)
    assert story.hangs == []
    story.wait(1)
    assert story.hangs == [[0, 1]]


def test_a_copy_of_a_script_that_sleeps_for_good_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story("ddp", is_script=True)
    story.steps(0, 1)
    told: list[str] = []
    services: Any = SimpleNamespace(stream=SimpleNamespace(emit=lambda _, **values: told.append(values["kind"])))
    copies = OwnCopies(services, story.ranks)
    monkeypatch.setattr("core.host.watches.script_watches.may_be_connected", lambda _pids: False)
    for rank in story.ranks:
        rank.child = cast(RankProcess, SimpleNamespace(pid=1))

    async def look() -> None:
        for now in range(40):
            copies.tick(float(now), AttemptPhase.TRAINING)
            await asyncio.sleep(0.001)

    asyncio.run(look())
    assert told == ["own_copies"]
    for _ in range(100):
        story.step(0)
        story.wait(1)
    assert story.hangs == [[1]]


@pytest.mark.parametrize("mode", ["independent", "ddp"])
def test_a_program_that_sleeps_before_its_first_step_is_named(mode: str) -> None:
    story = Story(mode, is_script=True)
    for number in (0, 1):
        story.message(number, "running")
    story.steps(0)
    story.message(1, "computing")  # kernels are compiled, say: that may take ten times as long
    for _ in range(int(START_S)):
        story.step(0)
        story.wait(2)
    assert story.hangs == []
    story.message(1, "running")
    for _ in range(int(START_S)):
        story.step(0)
        story.wait(1)
    assert story.hangs == []
    story.step(0)
    story.wait(2)
    assert story.hangs == [[1]]


def test_a_program_that_waits_for_another_is_not() -> None:
    story = Story("ddp", is_script=True)  # only the first one prints
    for number in (0, 1):
        story.message(number, "running")
    story.steps(0)
    story.message(0, "computing")  # it evaluates
    story.wait(3 * int(START_S))
    assert story.hangs == []


@pytest.mark.parametrize("are_copies", [False, True])
def test_programs_that_all_sleep_before_a_step_are_named(are_copies: bool) -> None:
    story = Story("ddp", limit_s=2.0, is_script=True)
    story.ranks.are_copies = are_copies
    for number in (0, 1):
        story.message(number, "running")
    story.wait(10 * int(START_S))
    assert story.hangs == []
    story.wait(1)
    assert story.hangs == [[0, 1]]
