"""Runs the checkers: types, style, encodings, layout, layers and collection. ``python -m tests.checkers``"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# What does one thing on Windows and another elsewhere; PyTorch's and Qt's types are the same on both.
_FOR_WINDOWS: Final = (
    *("-p", "core", "-p", "installer", "-p", "workers.script"),
    *("-m", "workers.host_link.connection"),
    *("-m", "workers.all_reduce.peer_watch", "-m", "workers.all_reduce.shared_arena"),
)
_QUICK: Final = ("--follow-imports", "skip", "--no-warn-unused-ignores", "--cache-dir", ".mypy_cache/win32")
_LAYERS: Final = "from importlinter.cli import lint_imports_command; lint_imports_command()"

CHECKERS: Final[dict[str, tuple[str, ...]]] = {
    "types": ("-m", "mypy"),
    # It also keeps what it has prepared, which is most of the work: else each of the tests' processes does all of it.
    "collection": ("-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"),
    "types for Windows": ("-m", "mypy", "--platform", "win32", *_QUICK, *_FOR_WINDOWS),
    "layers": ("-c", _LAYERS, "--verbose"),
    "style": ("-m", "ruff", "check"),
    # `open` without a named encoding uses Windows' code page. The rule is in preview, which changes other rules too:
    # hence a call of its own.
    "encodings": ("-m", "ruff", "check", "--preview", "--select", "PLW1514"),
    "layout": ("-m", "ruff", "format", "--check", "--diff"),
}


def run_all() -> list[str]:
    """Runs all of them, two at a time; returns those that are not content, whose words it has printed."""
    with ThreadPoolExecutor(2) as pool:
        return [name for name, passed in zip(CHECKERS, pool.map(_run, CHECKERS), strict=True) if not passed]


def _run(name: str) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    began = time.monotonic()
    answer = subprocess.run(
        [sys.executable, *CHECKERS[name]],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    passed = answer.returncode == 0
    words = f"{name}: {'passed' if passed else 'FAILED'} ({time.monotonic() - began:.0f} s)\n"
    sys.stdout.write(words if passed else f"{words}{answer.stdout}\n")
    sys.stdout.flush()
    return passed


if __name__ == "__main__":
    sys.exit(1 if run_all() else 0)
