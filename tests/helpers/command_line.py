"""`CommandLine`: `python -m core …` as a person types it, in a folder of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.run_folder.store import RunStore
from tests.helpers import run_logs
from tests.helpers.forking import ROOT

LIMIT_S: Final = 240


class CommandLine:
    """Commands with one folder of runs.

    Args:
        place: Where they run.
        ahead: Folders in which Python looks for modules first.

    Attributes:
        runs: The folder of runs.
        environment: Of every command.
    """

    def __init__(self, place: Path, ahead: Sequence[Path] = ()) -> None:
        self.place = place
        self.runs = place / "Läufe mit Raum"
        path = os.pathsep.join([*map(str, ahead), str(ROOT)])
        self.environment = {**os.environ, "PYTHONPATH": path, "RANKDECK_HOME": str(self.runs)}

    def write_text(self, name: str, lines: int) -> None:
        text = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(lines))
        (self.place / name).write_text(text, encoding="utf-8", newline="\n")

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """A command in the background; `before`: a launcher's words that come before `-m core`."""
        return subprocess.Popen(
            [sys.executable, *before, "-m", "core", *words],
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, code: int = 0) -> str:
        """A command to its end; its stdout."""
        return self.end(self.start(*words), code)

    def end(self, process: subprocess.Popen[bytes], code: int = 0) -> str:
        """Waits for a command; its stdout, after it has ended with `code`."""
        out, error = process.communicate(timeout=LIMIT_S)
        assert process.returncode == code, (error.decode("utf-8"), run_logs.sections(self.runs))
        return out.decode("utf-8")

    def only_run(self) -> RunStore:
        """The one run there is, once it has made its first step."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for metrics in self.runs.glob("*/metrics.jsonl"):
                if b'"event":"step"' in metrics.read_bytes().replace(b'": "', b'":"'):
                    return RunStore.open(metrics.parent)
            time.sleep(0.05)
        raise AssertionError(f"no step was made: {run_logs.sections(self.runs)}")

    def end_runs(self) -> None:
        for folder in self.runs.glob("*/host.json"):
            self.start("stop", "--now", str(folder.parent)).communicate(timeout=60)
