"""Runs the checkers, then the tests of the first tier, or with ``--all`` of both. ``python -m tests.run_suite [--all]``

A test that fails makes the suite red, also where it passes when it is run again alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from installer.start import run
from tests import checkers, tiers

ROOT: Final = Path(__file__).resolve().parent.parent
# Test files side by side, and no more than two above the cores: about half of them wait while others compute.
MOST_WORKERS: Final = 4


def side_by_side(*, everything: bool) -> list[str]:
    """pytest's arguments: test files side by side, in the order of tests/conftest.py; the slowest tests are named."""
    workers = min((os.cpu_count() or 1) + 2, MOST_WORKERS)
    tier = [] if everything else ["-m", f"not benchmark and not {tiers.SECOND}"]
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", "--durations=40", *tier]


def main(argv: Sequence[str] = ()) -> int:
    """Runs checkers and tests; returns 0 if all of them pass."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would prepare a thousand files of tests anew
    unhappy = checkers.run_all()
    code = run([sys.executable, "-m", "pytest", *side_by_side(everything=list(argv) == ["--all"])])
    if unhappy:
        print("\nCheckers that are not content (above):", *unhappy, sep="\n  ", flush=True)
    return code or (1 if unhappy else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
