"""One line of a comparison: what differs, and which is best."""

from __future__ import annotations

import pytest

from core.compare.results import Row, best_places
from core.formatting import UNKNOWN


@pytest.mark.parametrize(
    ("texts", "differs", "changed"),
    [
        (("a", "a", "a"), False, ()),
        (("a", "a", "b"), True, (2,)),
        (("a", "b"), True, (1,)),
        (("a", "b", "b", "a"), True, (1, 2)),
    ],
)
def test_what_the_first_run_does_not_have_stands_out(
    texts: tuple[str, ...], differs: bool, changed: tuple[int, ...]
) -> None:
    row = Row("lr", "Learning rate", texts, texts)
    assert (row.differs, row.changed) == (differs, changed)


def test_a_line_that_no_run_fills_is_empty() -> None:
    assert Row("driver", "Driver", (None, None), (UNKNOWN, UNKNOWN)).is_empty
    assert not Row("driver", "Driver", (None, "1"), (UNKNOWN, "1")).is_empty


def test_the_best_is_the_lowest_or_the_highest_of_two_and_more() -> None:
    assert best_places((2.0, None, 1.0), "lower") == (2,)
    assert best_places((2.0, 2.0, 1.0), "higher") == (0, 1)
    assert best_places((2.0, None), "lower") == ()
    assert best_places((2.0, 2.0), "lower") == ()
    assert best_places((2.0, 1.0), "") == ()
