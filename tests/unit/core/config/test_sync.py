"""How independent ranks are asked to synchronise."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.config.sync import (
    AVERAGE,
    DILOCO,
    DILOCO_FROM,
    LONG_FROM,
    OUTER_LONG,
    OUTER_SHORT,
    Synchronisation,
    resolve_synchronisation,
)


def test_auto_averages_for_short_intervals_and_takes_diloco_for_long_ones() -> None:
    assert resolve_synchronisation(RunConfig()) is None
    for every, method in ((1, AVERAGE), (DILOCO_FROM - 1, AVERAGE), (DILOCO_FROM, DILOCO), (500, DILOCO)):
        rule = resolve_synchronisation(RunConfig(sync_every=every))
        assert rule is not None and rule.method == method
    averaged = resolve_synchronisation(RunConfig(sync_every=500, sync_method=AVERAGE))
    assert averaged is not None and (averaged.outer_lr, averaged.outer_momentum) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("settings", "outer"),
    [
        ({"sync_every": LONG_FROM - 1}, OUTER_SHORT),
        ({"sync_every": LONG_FROM}, OUTER_LONG),
        ({"sync_every": 2, "sync_method": DILOCO}, OUTER_SHORT),
    ],
)
def test_the_outer_optimizer_follows_the_interval(settings: dict[str, object], outer: tuple[float, float]) -> None:
    rule = resolve_synchronisation(RunConfig().replace(**settings))
    assert rule is not None
    assert (rule.every, rule.method) == (settings["sync_every"], DILOCO)
    assert (rule.outer_lr, rule.outer_momentum) == outer


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Synchronisation(1, AVERAGE, 1.0, 0.0), "every step by averaging"),
        (Synchronisation(1500, AVERAGE, 1.0, 0.0), "every 1,500 steps by averaging"),
        (
            Synchronisation(50, DILOCO, 1.0, 0.5),
            "every 50 steps by DiLoCo (outer learning rate 1, momentum 0.5)",
        ),
    ],
)
def test_a_rule_as_text(rule: Synchronisation, text: str) -> None:
    assert rule.text == text
