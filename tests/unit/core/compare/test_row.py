"""One line of a comparison: what differs, and which is best."""

from __future__ import annotations

import pytest

from core.compare.row import Row, best_places
from core.formatting import UNKNOWN


@pytest.mark.parametrize(
    ("texts", "differs", "outliers"),
    [
        (("a", "a", "a"), False, ()),
        (("a", "a", "b"), True, (2,)),
        (("a", "b"), True, (0, 1)),
        (("a", "b", "a", "b"), True, (0, 1, 2, 3)),
        (("a", "b", "c", "b"), True, (0, 2)),
    ],
)
def test_what_most_runs_do_not_have_stands_out(
    texts: tuple[str, ...], differs: bool, outliers: tuple[int, ...]
) -> None:
    row = Row("lr", "Learning rate", texts, texts)
    assert (row.differs, row.outliers) == (differs, outliers)


def test_a_line_that_no_run_fills_is_empty() -> None:
    assert Row("driver", "Driver", (None, None), (UNKNOWN, UNKNOWN)).is_empty
    assert not Row("driver", "Driver", (None, "1"), (UNKNOWN, "1")).is_empty


def test_the_best_is_the_lowest_or_the_highest_of_two_and_more() -> None:
    assert best_places((2.0, None, 1.0), "lower") == (2,)
    assert best_places((2.0, 2.0, 1.0), "higher") == (0, 1)
    assert best_places((2.0, None), "lower") == ()
    assert best_places((2.0, 2.0), "lower") == ()
    assert best_places((2.0, 1.0), "") == ()
