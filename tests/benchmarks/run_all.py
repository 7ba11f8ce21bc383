"""Runs every benchmark, one after another, and prints what they measured as one table.

python -m tests.benchmarks.run_all [--csv FILE] [NAME…]      NAME: listener, plots, … (all of them)
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
# A benchmark whose contenders take turns lasts as long as it is asked to.
LIMIT_S: Final = 3600.0


@dataclass(frozen=True)
class Figure:
    """One line of what a benchmark printed."""

    benchmark: str
    words: str


def benchmarks(names: Sequence[str]) -> list[Path]:
    """The benchmark files asked for; all without names."""
    found = sorted(HERE.glob("bench_*.py"))
    return [path for path in found if not names or path.stem.removeprefix("bench_") in names]


def run(path: Path) -> tuple[int, str]:
    """Runs one benchmark alone; its exit code and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "benchmark", "--timeout", str(LIMIT_S), str(path)]
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()  # else what it measures would go on, and lie under the next benchmark
            output, _ = process.communicate()  # what it had printed was measured all the same
            return 1, f"{output}\nnot done after {LIMIT_S:.0f} s\n"
    return process.returncode, output


def figures(name: str, output: str) -> Iterator[Figure]:
    """The lines with a measured number; pytest's own (dots, the closing line) are left out."""
    for line in output.splitlines():
        words = line.strip().lstrip(".").strip()
        own = re.match(r"(=+ |\d+ (passed|failed|deselected|skipped|error)|SKIPPED|\[\d)", words)
        if words and not own:
            yield Figure(name, words)


def main(arguments: Sequence[str]) -> int:
    """Runs what is asked for; the exit code is 1 when a benchmark failed to run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, help="Also write the table to this file.")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores")
    rows: list[Figure] = []
    failed: list[str] = []
    for path in benchmarks(asked.names):
        name = path.stem.removeprefix("bench_")
        began = time.monotonic()
        code, output = run(path)
        print(f"\n{name} ({time.monotonic() - began:.0f} s)")
        found = list(figures(name, output)) if code == 0 else []
        for figure in found:
            print(f"  {figure.words}")
        rows += found
        if code:
            failed.append(name)
            print(output)
    if asked.csv is not None:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["benchmark", "measured"])
            table.writerows([figure.benchmark, figure.words] for figure in rows)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
