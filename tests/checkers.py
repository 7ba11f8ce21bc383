"""Runs the checkers: types, types for Windows, style, encodings, layout and layers. ``python -m tests.checkers``"""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
    "style": ("-m", "ruff", "check"),
    # `open` without a named encoding uses Windows' code page. The rule is in preview, which changes other rules too:
    # hence a call of its own.
    "encodings": ("-m", "ruff", "check", "--preview", "--select", "PLW1514"),
    "layout": ("-m", "ruff", "format", "--check", "--diff"),
    "layers": ("-c", _LAYERS, "--verbose"),
    "types": ("-m", "mypy"),
    "types for Windows": ("-m", "mypy", "--platform", "win32", *_QUICK, *_FOR_WINDOWS),
}


def main() -> int:
    """Runs all of them, one after the other; returns 1 if one is not content."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    failed = []
    for name, arguments in CHECKERS.items():
        began = time.monotonic()
        answer = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        passed = answer.returncode == 0
        print(f"{name}: {'passed' if passed else 'FAILED'} ({time.monotonic() - began:.0f} s)", flush=True)
        if not passed:
            failed.append(name)
            print(answer.stdout, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
