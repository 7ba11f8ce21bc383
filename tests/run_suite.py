"""Runs the checkers, then the tests of the first tier, or with ``--all`` of both. ``python -m tests.run_suite [--all]``

A test that fails makes the suite red, also where it passes when it is run again alone. The exceptions are listed in
`unsteady.toml`, each with a date and a reason; `tests/test_run_suite.py` keeps that list short.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from installer.start import run
from tests import checkers, tiers

ROOT: Final = Path(__file__).resolve().parent.parent
UNSTEADY: Final = Path(__file__).with_name("unsteady.toml")
# Test files side by side, and no more than two above the cores: about half of them wait while others compute.
MOST_WORKERS: Final = 4
SOME_FAILED: Final = 1  # pytest's exit code


@dataclass(frozen=True)
class Unsteady:
    """A test that is known to fail now and then."""

    test: str
    since: datetime.date
    reason: str


def read_unsteady(path: Path = UNSTEADY) -> list[Unsteady]:
    """The tests that `unsteady.toml` lists."""
    return [Unsteady(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("unsteady", [])]


def side_by_side(*, everything: bool) -> list[str]:
    """pytest's arguments: test files side by side, in the order of tests/conftest.py; the slowest tests are named."""
    workers = min((os.cpu_count() or 1) + 2, MOST_WORKERS)
    tier = [] if everything else ["-m", f"not benchmark and not {tiers.SECOND}"]
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", "--durations=40", *tier]


def run_tests(
    pytest: Callable[[Sequence[str]], int],
    failed: Callable[[], list[str]],
    listed: set[str],
    *,
    everything: bool = False,
) -> int:
    """Runs the tests, and those that failed once more, alone, if every one of them is listed.

    Args:
        pytest: Runs pytest with these arguments; returns its exit code.
        failed: The tests that failed last.
        listed: The tests that are known to be unsteady.
        everything: The second tier too.

    Returns:
        pytest's exit code.
    """
    code = pytest(side_by_side(everything=everything))
    red = failed() if code == SOME_FAILED else []
    if not red or not listed.issuperset(red):
        return code
    print("\nListed in unsteady.toml, so once more, alone:", *red, sep="\n  ", flush=True)
    return pytest(red)


def main(argv: Sequence[str] = ()) -> int:
    """Runs checkers and tests; returns 0 if all of them pass."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would prepare a thousand files of tests anew
    unhappy = checkers.run_all()
    everything = list(argv) == ["--all"]
    code = run_tests(_pytest, _failed, {entry.test for entry in read_unsteady()}, everything=everything)
    if unhappy:
        print("\nCheckers that are not content (above):", *unhappy, sep="\n  ", flush=True)
    return code or (1 if unhappy else 0)


def _pytest(arguments: Sequence[str]) -> int:
    return run([sys.executable, "-m", "pytest", *arguments])


def _failed() -> list[str]:
    """The tests that failed last, as pytest keeps them."""
    kept = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
