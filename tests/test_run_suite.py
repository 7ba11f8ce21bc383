"""The suite's own rules: its tiers, and what makes it red."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import checkers, run_suite, tiers
from tests.run_suite import ROOT, side_by_side

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
