"""Fuzzy matching: what fits better stands higher, what does not fit is not there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.state.fuzzy_match import Index, matched, score

pytestmark = pytest.mark.windows


@dataclass(frozen=True)
class Named:
    title: str
    also: str = ""
    weight: float = 1.0


def titles(query: str, *entries: Named, many: int = 10) -> list[str]:
    return [entry.title for entry in Index(entries).best(query, many)]


def test_the_title_s_start_comes_before_a_word_before_an_inside_before_letters_apart() -> None:
    names = ("slot car", "a lr list", "lr schedule", "colrs", "longer rates")
    found = titles("lr", *(Named(name) for name in names))
    assert found == ["lr schedule", "a lr list", "colrs", "longer rates"]  # initials come last, "slot car" not at all


def test_each_word_must_fit_in_any_order_and_case() -> None:
    entries = [Named("Learning rate"), Named("Final learning rate"), Named("Rate limit"), Named("Léarning rate")]
    assert titles("RATE learn", *entries) == ["Learning rate", "Final learning rate"]
    assert titles("learning rate momentum", *entries) == []


def test_other_names_find_an_entry_after_all_titles() -> None:
    entries = [Named("shakespeare", "night tag"), Named("night run"), Named("goodnight")]
    assert titles("night", *entries) == ["night run", "goodnight", "shakespeare"]


def test_letters_apart_fit_only_from_three_on_and_close_ones_better() -> None:
    assert score("shk", "shakespeare") > 0
    assert score("se", "shakespeare") == 0
    assert score("abc", "abxc") > score("abc", "axxbxxc") > 0
    assert score("cba", "abc") == 0
    assert score("lear", "sample temperature") == 0


def test_a_lighter_entry_stands_behind_one_that_fits_alike() -> None:
    entries = [Named("replay", weight=0.8), Named("resume")]
    assert titles("re", *entries) == titles("", *entries) == ["resume", "replay"]


def test_an_empty_query_keeps_the_order_and_equal_entries_too() -> None:
    entries = [Named("one"), Named("two"), Named("six")]
    assert titles("", *entries, many=2) == ["one", "two"]
    assert titles(" ", *entries) == ["one", "two", "six"]
    assert titles("e", Named("xe"), Named("ye")) == ["xe", "ye"]


def test_of_two_that_fit_alike_the_shorter_comes_first() -> None:
    assert titles("steps", Named("Steps between evaluations"), Named("Steps")) == ["Steps", "Steps between evaluations"]


@pytest.mark.parametrize(
    ("query", "title", "places"),
    [
        ("rate", "Learning rate", [9, 10, 11, 12]),
        ("LEA ra", "Learning rate", [0, 1, 2, 9, 10]),
        ("lrn", "Learning rate", [0, 3, 4]),
        ("x", "Learning rate", []),
        ("st", "Weißt Straße", []),  # its letters have other places once they are folded
    ],
)
def test_matched_letters_have_their_places(query: str, title: str, places: list[int]) -> None:
    assert matched(query, title) == places
