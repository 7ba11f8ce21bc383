"""Tables for docs/windows-tests.md, from pytest's `--junitxml` files: `python -m tests.helpers.suite_table FILE...`.

A test that is in several files counts as in the last of them, so that parts can be run again.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

RESULTS: Final = ("passed", "failed", "skipped")
_LEVELS: Final = ("unit", "runs", "training")


def read_results(files: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """ "folder/module::test" → its result, and the reason if it was skipped."""
    found: dict[str, tuple[str, str]] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            # A module that is skipped whole has its own name only.
            module = (case.get("classname") or case.get("name") or "").removeprefix("tests.").replace(".", "/")
            skipped = case.find("skipped")
            failed = case.find("failure") is not None or case.find("error") is not None
            result = "failed" if failed else "passed" if skipped is None else "skipped"
            found[f"{module}::{case.get('name')}"] = (result, "" if skipped is None else _reason(skipped))
    return found


def _reason(skipped: ElementTree.Element) -> str:
    reason = skipped.get("message", "")
    if reason == "collection skipped":  # then the reason ends the text: "('file', 3, 'Skipped: no torch')"
        reason = (skipped.text or "").partition("Skipped: ")[2].rstrip("')\"")
    return re.sub(r" \(0x\w+\)", "", reason)


def folder_of(name: str) -> str:
    """`tests/runs/core` for a test of any module below it."""
    parts = name.partition("::")[0].split("/")
    return "/".join(("tests", *parts[: 2 if parts[0] in _LEVELS and len(parts) > 2 else 1]))


def tables(results: dict[str, tuple[str, str]]) -> str:
    """Results by folder, and why tests were skipped."""
    by_folder: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    for name, (result, reason) in results.items():
        by_folder[folder_of(name)][result] += 1
        reasons.update([reason] if reason else [])
    rows: list[tuple[str, ...]] = [
        (f"`{folder}/`", *(str(counts[result]) for result in RESULTS)) for folder, counts in sorted(by_folder.items())
    ]
    total = Counter(result for result, _ in results.values())
    rows.append(("all", *(str(total[result]) for result in RESULTS)))
    causes = [(str(number), reason) for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    return _table(("tests in", *RESULTS), rows) + "\n" + _table(("tests", "skipped because"), causes)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(tables(read_results(map(Path, sys.argv[1:]))))
