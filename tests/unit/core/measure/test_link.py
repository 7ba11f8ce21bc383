"""Cost of synchronising over a link."""

from __future__ import annotations

import pytest

from core.measure.link import Link, SyncCost, sync_cost

pytestmark = pytest.mark.windows
LINK = Link(mb_per_s=500.0, latency_s=0.001, ranks=2, backend="gloo")


def test_a_longer_interval_sends_and_waits_in_proportion() -> None:
    each, tenth = (sync_cost(4e6, 0.1, LINK, every) for every in (1, 10))
    assert each.bytes_per_step == 4e6 and tenth.bytes_per_step == pytest.approx(4e5)
    assert each.wait_share == pytest.approx(0.009 / 0.109)
    assert sync_cost(4e6, 0.1, LINK, None) == SyncCost()


@pytest.mark.parametrize(("ranks", "sent"), [(1, 0.0), (2, 12.0), (3, 16.0), (4, 18.0)])
def test_a_ring_sends_nearly_twice_the_model(ranks: int, sent: float) -> None:
    assert sync_cost(12.0, 0.1, Link(500.0, 0.001, ranks, "gloo"), 1).bytes_per_step == sent


def test_a_cost_as_text() -> None:
    assert sync_cost(3.4e6, 0.08, LINK, 1).text == "3.4 MB a step, about 9 % of the time waiting"
    assert sync_cost(3.4e9, 1.0, LINK, 100).text == "34 MB a step, about 6 % of the time waiting"
    assert sync_cost(3.4e6, 0.08, LINK, 500).text.endswith("under 1 % of the time waiting")
    assert SyncCost().text == "nothing is sent while training"
