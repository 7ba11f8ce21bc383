"""The suite's own rules: its tiers, what makes it red, and how long a test may be listed as unsteady."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import checkers, run_suite, tiers
from tests.run_suite import ROOT, read_unsteady, run_tests, side_by_side

MOST_LISTED = 3
LONGEST = datetime.timedelta(days=14)
CONFTEST = """
from tests import tiers
from tests.conftest import pytest_deselected, pytest_terminal_summary, pytest_testnodedown

def pytest_configure(config):
    for name in tiers.TIERS:
        config.addinivalue_line("markers", name)

def pytest_collection_modifyitems(items):
    tiers.mark(items)
"""
ONE_OF_EACH = """
import pytest, time

@pytest.mark.second_tier
def test_left_out(): pass

def test_run(): time.sleep(0.001)
"""
ONE, TWO = "tests/test_a.py::test_one", "tests/test_a.py::test_two"


class Pytest:
    """pytest that ends, call by call, with these codes."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.calls: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        self.calls.append(list(arguments))
        return self._codes.pop(0)


@pytest.mark.parametrize("everything", [False, True])
def test_files_run_side_by_side(everything: bool) -> None:
    option, workers, *rest = side_by_side(everything=everything)
    assert option == "-n" and 1 <= int(workers) <= 4
    assert rest[:4] == ["--dist", "loadfile", "--no-loadscope-reorder", "--durations=40"]
    assert rest[4:] == ([] if everything else ["-m", "not benchmark and not second_tier"])


@pytest.mark.parametrize(("argv", "everything"), [([], False), (["--all"], True)])
@pytest.mark.parametrize(
    ("unhappy", "code", "expected"), [([], 0, 0), (["types"], 0, 1), ([], 1, 1), (["types"], 2, 2)]
)
def test_checkers_run_before_the_tests_and_count(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], everything: bool, unhappy: list[str], code: int, expected: int
) -> None:
    order: list[object] = []
    monkeypatch.setattr(checkers, "run_all", lambda: order.append("checkers") or unhappy)
    monkeypatch.setattr(run_suite, "run", lambda command: order.append(command[3:]) or code)
    monkeypatch.setattr(run_suite, "_failed", lambda: [ONE])
    assert run_suite.main(argv) == expected
    assert order == ["checkers", side_by_side(everything=everything)]


def test_every_entry_of_the_tiers_is_there() -> None:
    entries = [
        entry for table in (tiers.SECOND_TIER, tiers.FIRST_IN_TRAINING) for part in table.values() for entry in part
    ]
    assert len(set(entries)) == len(entries)
    assert [entry for entry in entries if not (tiers.TESTS / entry).exists()] == []
    assert all(entry.startswith("training/") for part in tiers.FIRST_IN_TRAINING.values() for entry in part)


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("unit/core/test_new.py", tiers.FIRST),
        ("runs/app/test_new.py", tiers.FIRST),
        ("runs/machines/test_new.py", tiers.SECOND),
        ("training/workers/test_new.py", tiers.SECOND),
        (next(iter(tiers.FIRST_IN_TRAINING.values()))[0], tiers.FIRST),
        ("test_new.py", tiers.FIRST),
    ],
)
def test_a_new_test_is_of_the_first_tier_unless_it_trains(path: str, tier: str) -> None:
    assert tiers.tier_of(tiers.TESTS / path) == tier


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_marker_beats_the_table_and_the_end_says_so(tmp_path: Path, workers: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit" / "test_some.py").write_text(ONE_OF_EACH, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *side_by_side(everything=False), "-n", workers]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(argv, cwd=tmp_path, env=variables, capture_output=True, encoding="utf-8", check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "first tier: unit 0 s, runs 0 s, training 0 s; 1 tests of the second tier were not run" in found.stdout
    assert "1 passed" in found.stdout.splitlines()[-1]


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
    assert run.calls == [side_by_side(everything=False), [ONE]]


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
