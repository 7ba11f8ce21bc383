"""The whole test suite: files side by side, then once more, alone, what failed beside others.

Hundreds of tests start real processes and share few cores. One that fails in that crowd and passes alone is unsteady:
it is named, for somebody to mend it, and does not turn the whole suite red. More than a few are no accident.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MOST_WORKERS: Final = 4
"""Test files side by side, and no more than one above the cores: some wait while others compute."""
MOST_UNSTEADY: Final = 3
SOME_FAILED: Final = 1  # pytest's exit code


def run_suite(python: Path, root: Path) -> int:
    """Runs every test; returns pytest's exit code.

    Args:
        python: The environment's interpreter.
        root: The checkout, where this process stands.
    """
    code = run([str(python), "-m", "pytest", *side_by_side()])
    failed = _failed(root) if code == SOME_FAILED else []
    if not 0 < len(failed) <= MOST_UNSTEADY:
        return code
    print("\nOnce more, alone, what failed beside others:", *failed, sep="\n  ", flush=True)
    code = run([str(python), "-m", "pytest", *failed])
    if code == 0:
        print("\nUNSTEADY, to be mended: failed beside others, passed alone:", *failed, sep="\n  ", flush=True)
    return code


def side_by_side() -> list[str]:
    """pytest's arguments: test files side by side, in the order in which tests/conftest.py puts them."""
    return ["-n", str(min((os.cpu_count() or 1) + 1, MOST_WORKERS)), "--dist", "loadfile", "--no-loadscope-reorder"]


def run(command: Sequence[str]) -> int:
    """Runs a program and waits for it; Ctrl+C reaches it too, and it decides what that means."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _failed(root: Path) -> list[str]:
    """The tests that failed last, as pytest keeps them."""
    kept = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else []
