"""What synchronising costs."""

from __future__ import annotations

import pytest

from core.probes.sync_cost import FREE, Link, achieved, price, sent_bytes

pytestmark = pytest.mark.windows
LINK = Link(mb_per_s=500.0, latency_s=0.001, ranks=2, backend="gloo")


def test_a_longer_interval_sends_and_waits_in_proportion() -> None:
    each, tenth = (price(4e6, 0.1, LINK, every) for every in (1, 10))
    assert each.bytes_per_step == 4e6 and tenth.bytes_per_step == pytest.approx(4e5)
    assert each.wait_s_per_step == pytest.approx(0.001 + 0.008)
    assert tenth.wait_s_per_step == pytest.approx(each.wait_s_per_step / 10)
    assert each.wait_share == pytest.approx(0.009 / 0.109)
    assert price(4e6, 0.1, LINK, None) == FREE


def test_a_ring_sends_nearly_twice_the_model_where_ranks_are_many() -> None:
    assert [sent_bytes(12.0, ranks) for ranks in (1, 2, 3, 4)] == [0.0, 12.0, 16.0, 18.0]


def test_words_for_the_label() -> None:
    assert price(3.4e6, 0.08, LINK, 1).text == "3.4 MB a step, about 9 % of the time waiting"
    assert price(3.4e9, 1.0, LINK, 100).text == "34 MB a step, about 6 % of the time waiting"
    assert price(3.4e6, 0.08, LINK, 500).text.endswith("under 1 % of the time waiting")
    assert FREE.text == "nothing is sent while training"
    assert achieved(0.2, 0.05, 1e6).text == "1 MB a step, about 25 % of the time waiting"
    assert achieved(0.0, 0.0, 0.0) == FREE
