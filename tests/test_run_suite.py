"""The suite's own rules: what makes it red, and how long a test may be listed as unsteady."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.run_suite import ROOT, read_unsteady, run_tests, side_by_side

MOST_LISTED = 3
LONGEST = datetime.timedelta(days=14)
ONE, TWO = "tests/test_a.py::test_one", "tests/test_a.py::test_two"


class Pytest:
    """pytest that ends, call by call, with these codes."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.calls: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        self.calls.append(list(arguments))
        return self._codes.pop(0)


def test_files_run_side_by_side() -> None:
    option, workers, *rest = side_by_side()
    assert option == "-n" and 1 <= int(workers) <= 4
    assert rest == ["--dist", "loadfile", "--no-loadscope-reorder", "--durations=40"]


@pytest.mark.parametrize(
    ("code", "failed", "listed"),
    [
        (0, [], {ONE}),
        (1, [ONE], set()),
        (1, [ONE, TWO], {ONE}),
        (1, [], {ONE}),
        (2, [ONE], {ONE}),
        (5, [], set()),
    ],
)
def test_a_red_test_is_red(code: int, failed: list[str], listed: set[str]) -> None:
    run = Pytest(code)
    assert run_tests(run, lambda: failed, listed) == code
    assert len(run.calls) == 1


@pytest.mark.parametrize("again", [0, 1])
def test_a_listed_test_is_tried_once_more_alone(again: int) -> None:
    run = Pytest(1, again)
    assert run_tests(run, lambda: [ONE], {ONE, TWO}) == again
    assert run.calls == [side_by_side(), [ONE]]


def test_the_list_is_read_with_dates_and_reasons(tmp_path: Path) -> None:
    path = tmp_path / "unsteady.toml"
    path.write_text(f'[[unsteady]]\ntest = "{ONE}"\nsince = 2026-11-23\nreason = "ä"\n', encoding="utf-8")
    (entry,) = read_unsteady(path)
    assert (entry.test, entry.since, entry.reason) == (ONE, datetime.date(2026, 11, 23), "ä")


def test_the_list_is_short_and_its_entries_are_young() -> None:
    """A test that is listed for longer is to be mended, or removed."""
    entries = read_unsteady()
    assert len(entries) <= MOST_LISTED
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for entry in entries:
        file, _, name = entry.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), entry.test
        assert len(entry.reason.split()) >= 5, f"{entry.test}: give a reason"
        assert today - LONGEST <= entry.since <= today + datetime.timedelta(days=1), f"{entry.test}: mend it"
