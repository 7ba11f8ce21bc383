"""The words of child processes, for the report of the test that started them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SHOWN_LINES: Final = 60
SHOWN_FILES: Final = 12


def sections(folder: Path) -> list[tuple[str, str]]:
    """The end of each run's logs, events and state below a folder, as (title, text)."""
    found: list[tuple[str, str]] = []
    for state in sorted(folder.rglob("state.json")):
        run = state.parent
        for path in (state, *sorted(run.glob("logs/*.log")), run / "columns" / "events.jsonl"):
            if path.is_file():
                found.append((str(path.relative_to(folder)), tail(path)))
    return found[:SHOWN_FILES]


def tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    left_out = f"({len(lines) - SHOWN_LINES} lines before)\n" if len(lines) > SHOWN_LINES else ""
    return left_out + "\n".join(lines[-SHOWN_LINES:])
