"""Which names of a script are charted, and as what."""

from __future__ import annotations

from typing import Any

from app.run_data.chart_names import ChartName, chart_names, names_in, unread_numbers

CHARTS: dict[str, Any] = {"event": "charts", "names": {"train_loss": "loss"}}
UNREAD: dict[str, Any] = {"event": "alert", "kind": "not_charted", "names": {"l": "l"}, "numbers": {"l": [1.5, 2, "x"]}}


def test_the_newest_name_counts_and_other_events_name_none() -> None:
    later = {"event": "charts", "names": {"train_loss": "perplexity", 7: 8}}
    others: list[dict[str, Any]] = [
        {"event": "launch", "names": {"a": "b"}},
        {"event": "alert", "kind": "hang", "names": {"c": "d"}},
        {"event": "charts", "names": ["e"]},
        {"event": "charts"},
    ]
    assert names_in([CHARTS, UNREAD, *others]) == {"train_loss": "loss", "l": "l"}
    assert names_in([CHARTS, later]) == {"train_loss": "perplexity", "7": "8"}


def test_numbers_are_shown_as_long_as_nothing_could_be_charted() -> None:
    assert unread_numbers([UNREAD]) == {"l": "1.5, 2"}
    assert unread_numbers([UNREAD, CHARTS]) == {}
    assert unread_numbers([CHARTS, UNREAD]) == {"l": "1.5, 2"}
    assert unread_numbers([{**UNREAD, "numbers": [1]}, {**UNREAD, "kind": "hang"}]) == {}


def test_a_persons_choice_stands_first_and_hides_what_was_seen() -> None:
    names = chart_names({"acc": "accuracy"}, {"loss": "loss", "acc": "acc"})
    assert names == [ChartName("acc", "accuracy", True), ChartName("loss", "loss", False)]
