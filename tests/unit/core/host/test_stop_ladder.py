"""A stop gets harder with time, never softer."""

from __future__ import annotations

from core.host.stop_ladder import Rung, StopLadder


def test_a_stop_climbs_and_never_comes_down() -> None:
    ladder = StopLadder(20.0)
    assert ladder.rung(100.0) is Rung.NONE and not ladder.is_asked
    ladder.ask(100.0)
    ladder.ask(110.0)
    assert (ladder.rung(119.9), ladder.rung(120.0)) == (Rung.ASKED, Rung.END)
    ladder.hurry(115.0)
    assert ladder.rung(115.0) is Rung.END and ladder.is_hurried
    ladder.hurry(200.0)
    assert ladder.rung(116.0) is Rung.END


def test_another_limit_counts_from_now_and_leaves_a_hurried_stop_due() -> None:
    ladder = StopLadder(20.0)
    ladder.set_timeout(5.0, 90.0)
    assert not ladder.is_asked
    ladder.ask(100.0)
    ladder.set_timeout(30.0, 104.0)
    assert (ladder.rung(133.9), ladder.rung(134.0)) == (Rung.ASKED, Rung.END)
    ladder.hurry(110.0)
    ladder.set_timeout(50.0, 111.0)
    assert ladder.rung(111.0) is Rung.END
