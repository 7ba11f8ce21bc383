"""The pause between two pictures: by what they cost, within limits."""

from __future__ import annotations

import pytest

from app.charts.plots_panel import (
    LARGEST_SHARE,
    LIVE_S,
    LONGEST_UNSEEN_S,
    SLOWEST_S,
    SPARING_SHARE,
    SPARING_SLOWEST_S,
    RedrawPace,
)


def test_cheap_pictures_come_as_often_as_a_person_can_use_them() -> None:
    pace = RedrawPace()
    assert pace.pause_s(sparing=False) == LIVE_S
    pace.learn(0.001)
    assert pace.pause_s(sparing=False) == pace.pause_s(sparing=True) == LIVE_S


def test_dear_ones_take_their_share_of_a_processor() -> None:
    pace = RedrawPace()
    pace.learn(0.04)
    assert pace.pause_s(sparing=False) == pytest.approx(0.04 / LARGEST_SHARE)
    assert pace.pause_s(sparing=True) == pytest.approx(0.04 / SPARING_SHARE)
    pace.learn(9.0)
    assert pace.pause_s(sparing=False) == SLOWEST_S
    assert pace.pause_s(sparing=True) == SPARING_SLOWEST_S


def test_one_picture_alone_changes_little() -> None:
    pace = RedrawPace()
    for number in range(200):  # a clock that ticks every 15.6 ms, and pictures of 24 ms
        pace.learn(0.0156 * (number * 3 % 2 + 1))
    assert pace.pause_s(sparing=True) == pytest.approx(0.0234 / SPARING_SHARE, rel=0.25)


def test_points_within_a_pixel_wait_for_others_but_not_for_long() -> None:
    pace = RedrawPace()
    assert not pace.is_worth_drawing(0.4, since_s=3.0)
    assert pace.is_worth_drawing(1.0, since_s=3.0)
    assert pace.is_worth_drawing(-0.1, since_s=3.0), "another axis, or steps that were taken back"
    assert pace.is_worth_drawing(0.0, since_s=LONGEST_UNSEEN_S)
