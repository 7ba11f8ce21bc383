"""A script's loss that is not finite is said once a stretch, whichever ranks report it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.host.watches.script_watches import LossWatch
from tests.helpers.resolved_run import made_ranks


class Events:
    def __init__(self) -> None:
        self.said: list[tuple[int, Any]] = []
        self.ranks = made_ranks("ddp", 2, self_contained=True)
        services: Any = SimpleNamespace(stream=self)
        self.watch = LossWatch(services, self.ranks)

    def take(self, number: int, lines: list[dict[str, Any]]) -> None:
        self.watch.take(self.ranks[number], lines)

    def emit(self, event: str, **fields: Any) -> None:
        assert event == "alert" and fields["title"] and fields["cause"] and fields["next_step"]
        self.said.append((fields["of"], fields["step"]))


def bad(step: int | None, name: str = "loss") -> dict[str, Any]:
    return {"event": "step", "step": step, name: None, "nonfinite": [name]}


def good(step: int) -> dict[str, Any]:
    return {"event": "step", "step": step, "loss": 1.0}


def test_once_until_all_ranks_are_finite_again() -> None:
    events = Events()
    events.take(0, [good(1), bad(2), bad(3)])
    events.take(1, [bad(2)])
    events.take(0, [good(4)])
    events.take(1, [bad(4)])
    assert events.said == [(0, 2)]
    events.take(1, [good(5), bad(6, "train_loss")])
    assert events.said == [(0, 2), (1, 6)]


def test_other_figures_and_lines_without_a_loss_say_nothing() -> None:
    events = Events()
    events.take(0, [bad(1, "grad_norm"), {"event": "device", "util": None}])
    assert events.said == []
    events.take(0, [bad(None), {"event": "step", "step": 3, "lr": 0.1}, bad(4)])
    assert events.said == [(0, None)], "a line without a loss ends no stretch"
