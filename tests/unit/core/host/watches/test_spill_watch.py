"""The watch on readings that Windows' counters would give: when a spill is reported, what helps, when it is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.config import RunConfig
from core.config.batch import resolve_batch
from core.host.ranks import Ranks
from core.host.watches.spill_watch import ENOUGH, KIND, SpillWatch
from tests.helpers.resolved_run import made_ranks

GIB = 1 << 30


class Story:
    def __init__(self, ranks: Ranks) -> None:
        self.events: list[dict[str, Any]] = []
        services: Any = SimpleNamespace(stream=SimpleNamespace(emit=self._emit))
        self.watch = SpillWatch(services, ranks)
        self.uuids = [rank.command.device.uuid for rank in ranks]

    def _emit(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    def seconds(self, number: int, *shared: float | None, used: float = 11.7) -> None:
        for _ in range(number):
            self.watch.sampled([self._row(uuid, gib, used) for uuid, gib in zip(self.uuids, shared, strict=True)])

    @staticmethod
    def _row(uuid: str, shared: float | None, used: float) -> dict[str, Any]:
        row: dict[str, Any] = {"uuid": uuid, "memory_used_bytes": int(used * GIB), "memory_total_bytes": 12 * GIB}
        return row if shared is None else {**row, "rank_bytes": 10 * GIB, "rank_shared_bytes": int(shared * GIB)}


def test_a_spill_is_reported_once_with_half_the_micro_batch() -> None:
    story = Story(made_ranks("ddp", 2))
    story.seconds(ENOUGH - 1, 0.1, 3.0)
    assert story.events == []
    story.seconds(20, 0.1, 3.0)
    (alert,) = story.events
    batch = resolve_batch(RunConfig(), 2)
    assert (alert["kind"], alert["ranks"], alert["spilled_bytes"]) == (KIND, [1], 3 * GIB)
    assert (alert["micro_batch"], alert["grad_accum_steps"]) == (batch.micro // 2, batch.accumulation * 2)
    assert "3.0 GiB" in alert["cause"] and f"micro-batch {batch.micro // 2}" in alert["next_step"]
    assert "computer's memory" in alert["title"]


def test_a_peak_of_a_moment_is_none() -> None:
    story = Story(made_ranks("ddp", 2))
    for _ in range(5):
        story.seconds(ENOUGH - 1, 3.0, 3.0)
        story.seconds(1, 0.1, 0.1)
    assert story.events == []


def test_pinned_memory_beside_an_empty_card_is_none() -> None:
    story = Story(made_ranks("ddp", 2))
    story.seconds(20, 3.0, 3.0, used=6.0)
    assert story.events == []


def test_it_is_over_when_all_ranks_fit_again() -> None:
    story = Story(made_ranks("ddp", 2))
    story.seconds(ENOUGH, 3.0, 3.0)
    assert [event["ranks"] for event in story.events] == [[0], [0, 1]]
    story.seconds(20, 0.1, 3.0)
    assert len(story.events) == 2
    story.seconds(20, 0.1, 0.1)
    assert story.events[-1]["event"] == "alert_over" and story.events[-1]["kind"] == KIND


def test_without_counters_nothing_is_said() -> None:
    story = Story(made_ranks("ddp", 2))
    story.seconds(20, None, None)
    assert story.events == []


def test_a_program_with_a_batch_of_its_own_gets_other_advice() -> None:
    story = Story(made_ranks("ddp", 1, self_contained=True))
    story.seconds(ENOUGH, 3.0)
    assert "micro_batch" not in story.events[0] and "shorter sequences" in story.events[0]["next_step"]
