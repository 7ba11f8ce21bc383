"""The watch on a clock that the test winds: when it looks, what it reports, and of which runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from core.host.ranks import Ranks
from core.host.states import AttemptPhase
from core.host.watches.straggler_watch import LOOK_EVERY_S, StragglerWatch
from tests.helpers.resolved_run import made_ranks


class Story:
    """A run's ranks, which report steps; `events` is what is said of them."""

    def __init__(self, ranks: Ranks) -> None:
        self.events: list[dict[str, Any]] = []
        services: Any = SimpleNamespace(stream=SimpleNamespace(emit=self._emit))
        self.watch = StragglerWatch(services, ranks)
        self._ranks = ranks
        self._step, self._now = 0, 100.0

    def _emit(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    async def looks(self, number: int, works_ms: list[float], steps: int = 30, missing: int | None = None) -> None:
        """So many looks at steps in which ranks work that long; `missing` reports none."""
        for _ in range(number):
            for _ in range(steps):
                self._step += 1
                for rank, work_ms in enumerate(works_ms):
                    if rank != missing:
                        self.watch.take(self._ranks[rank], [line(self._step, max(works_ms), work_ms)])
            self.watch.tick(self._now, AttemptPhase.TRAINING)
            self._now += LOOK_EVERY_S
            self.watch.tick(self._now, AttemptPhase.TRAINING)
            while self.watch._reporting is not None:
                await asyncio.sleep(0.01)

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


def line(step: int, longest_ms: float, work_ms: float) -> dict[str, Any]:
    """As a rank writes it."""
    step_s, wait_s = (longest_ms + 1) / 1000, (longest_ms - work_ms + 1) / 1000
    rate = 8 / step_s
    values = {"step_time_s": step_s, "sync_wait_s": wait_s, "data_wait_s": 0.0, "samples_per_s": rate}
    return {"event": "step", "step": step, **values}


def told(ranks: Ranks, tell: Callable[[Story], Any]) -> Story:
    """A story as it is told, on an event loop."""

    async def run() -> Story:
        story = Story(ranks)
        await tell(story)
        await story.watch.close()
        return story

    return asyncio.run(run())


def test_it_is_said_after_three_looks_and_again_when_it_is_over() -> None:
    async def tell(story: Story) -> None:
        await story.looks(2, [50, 90])
        assert story.events == []
        await story.looks(4, [50, 90])
        assert story.kinds() == ["straggler", "alert"]
        await story.looks(2, [50, 50])
        assert len(story.events) == 2
        await story.looks(3, [50, 50])

    begun, alert, over = told(made_ranks("ddp", 2), tell).events
    assert begun["ranks"] == alert["ranks"] == [1] and begun["waits"] == {"0": pytest.approx(0.4396), "1": 0.0}
    assert begun["text"].replace("\N{NO-BREAK SPACE}", " ") == "CPU 0 waits 44 % of each step for CPU 1."
    assert alert["title"] == "CPU 1 slows down the other devices" and alert["cause"].startswith(begun["text"])
    assert alert["next_step"] and alert["window_step"] and alert["gain"] > 0
    assert (over["ranks"], over["text"]) == ([], "The other devices no longer wait for CPU 1.")


def test_steps_that_not_all_ranks_have_reported_do_not_count() -> None:
    async def tell(story: Story) -> None:
        await story.looks(5, [50, 90], missing=1)
        assert story.events == [] and len(story.watch._open) == 150
        await story.looks(3, [50, 90])
        assert story.kinds() == ["straggler", "alert"] and not story.watch._open

    told(made_ranks("ddp", 2), tell)


def test_slow_steps_are_collected_until_they_are_enough() -> None:
    async def tell(story: Story) -> None:
        await story.looks(8, [50, 90], steps=5)  # two looks at twenty steps
        assert story.events == []
        await story.looks(4, [50, 90], steps=5)
        assert story.kinds() == ["straggler", "alert"]

    told(made_ranks("fsdp", 2), tell)


@pytest.mark.parametrize(
    "ranks",
    [made_ranks("independent", 2), made_ranks("single", 1), made_ranks("ddp", 2, self_contained=True)],
    ids=["independent", "single", "a script"],
)
def test_of_ranks_that_do_not_train_in_step_nothing_is_said(ranks: Ranks) -> None:
    async def tell(story: Story) -> None:
        await story.looks(5, [50, 90][: len(ranks.all)])

    assert told(ranks, tell).events == []


def test_a_mode_that_measures_no_waits_says_nothing() -> None:
    ranks = made_ranks("zero", 2)

    async def tell(story: Story) -> None:
        for step in range(1, 200):
            for rank in (0, 1):
                story.watch.take(ranks[rank], [{**line(step, 90, 50), "sync_wait_s": None}])
            story.watch.tick(step, AttemptPhase.TRAINING)

    assert told(ranks, tell).events == []
