"""When it is said that ranks may hang, and when it is not: on a clock that the test winds."""

from __future__ import annotations

from typing import Any, cast

import pytest

from core.host.hang_watch import HangWatch
from core.protocol.messages import RankDone
from core.protocol.server import Connection
from tests.helpers.resolved_run import made_ranks

pytestmark = pytest.mark.windows


class Told:
    """What it said."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.alerts: list[dict[str, Any]] = []

    def change_phase(self, phase: str) -> None:
        self.phases.append(phase)

    def emit(self, event: str, **fields: Any) -> None:
        assert event == "alert"
        self.alerts.append(fields)


class Story:
    """Two ranks that train, and the clock."""

    def __init__(self, groups: int = 2) -> None:
        self.ranks, self.told, self.now = made_ranks("independent" if groups > 1 else "ddp", 2), Told(), 100.0
        self.hang_watch = HangWatch(self.ranks, self.told.change_phase, self.told.emit, after_s=60.0)
        for rank in self.ranks:
            rank.connection = cast(Connection, object())  # only asked whether there is one

    def steps(self, *numbers: int, step: int = 1) -> None:
        for number in numbers:
            self.ranks[number].heard(self.now)
            self.ranks[number].note_step({"step": step})

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1.0
            self.hang_watch.look(self.now)


def test_a_rank_that_falls_silent_is_named_once_and_when_it_is_back_it_is_over() -> None:
    story = Story()
    story.steps(0, 1)
    story.wait(59)
    assert story.told.alerts == []
    story.steps(0)
    story.wait(2)
    (alert,) = story.told.alerts
    assert alert["title"] == "CPU 1 may hang" and "From CPU 1 (step 1) there was no message for 61 s" in alert["cause"]
    assert "hold" not in alert["cause"] and alert["next_step"]
    assert story.told.phases == ["CPU 1 may hang: see Alerts"]
    story.wait(30)
    story.steps(1, step=2)
    story.wait(1)
    assert story.told.phases[1:] == [""] and len(story.told.alerts) == 1
    story.wait(400)
    assert len(story.told.alerts) == 2, "what is silent again is said again"


def test_ranks_in_step_are_silent_together() -> None:
    story = Story(groups=1)
    story.steps(0, 1)
    story.wait(61)
    (alert,) = story.told.alerts
    assert alert["title"] == "CPU 0 and CPU 1 may hang" and "holds up all" in alert["cause"]


def test_who_makes_long_pauses_may_make_a_longer_one() -> None:
    story = Story()
    story.steps(0, 1)
    story.wait(50)
    story.steps(0, 1, step=2)
    story.wait(249)
    assert story.told.alerts == []
    story.wait(3)
    assert len(story.told.alerts) == 1 and "the longest pause before was 50.0 s" in story.told.alerts[0]["cause"]


def test_an_evaluation_may_take_long_and_is_no_pause() -> None:
    story = Story()
    story.steps(0, 1)
    for rank in story.ranks:
        rank.heard(story.now)
        rank.phase = "evaluating"
    story.wait(500)
    assert story.told.alerts == []
    story.steps(0, 1, step=2)
    story.wait(61)
    assert len(story.told.alerts) == 1


def test_a_script_is_watched_once_it_has_made_a_step() -> None:
    story = Story()
    for rank in story.ranks:
        rank.phase = "running"
        rank.heard(story.now)
    story.wait(500)
    assert story.told.alerts == []  # it may compile or load for as long as it likes
    story.steps(0)
    story.wait(61)
    (alert,) = story.told.alerts
    assert alert["ranks"] == [0]  # the other one has never printed a step, and may never


def test_a_script_that_computes_may_be_silent_for_longer() -> None:
    story = Story()
    story.steps(0)
    story.ranks[0].phase = "computing"
    story.wait(500)
    assert story.told.alerts == []
    story.wait(101)
    assert len(story.told.alerts) == 1


def test_who_has_not_begun_waits_or_is_done_is_not_silent() -> None:
    story = Story()
    story.ranks[0].heard(story.now)
    story.steps(1)
    story.ranks[1].done = RankDone(1, True)
    story.wait(500)
    assert story.told.alerts == []


def test_a_computer_that_slept_has_not_fallen_silent() -> None:
    story = Story()
    story.steps(0, 1)
    story.wait(1)
    story.now += 8 * 3600
    story.wait(59)
    assert story.told.alerts == []
    story.wait(3)
    assert len(story.told.alerts) == 1
