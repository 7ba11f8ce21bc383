"""Leftovers: processes of an earlier attempt whose host and watcher were killed together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.processes import end_marked, folder_mark


def end_leftovers(run_dir: Path) -> dict[str, Any] | None:
    """Ends processes that earlier attempts of a run left; returns the alert's fields, None where there were none."""
    ended, left = end_marked(folder_mark(run_dir))
    return _alert(ended, left) if ended or left else None


def _alert(ended: Sequence[int], left: Sequence[int]) -> dict[str, Any]:
    pids = ", ".join(map(str, sorted((*ended, *left))))
    cause = f"Processes of an earlier attempt were still running after its host was killed (pid {pids})."
    next_step = "They were ended. You don't need to do anything."
    if left:
        would_not = ", ".join(map(str, left))
        next_step = f"End them yourself: process {would_not} did not end, even when killed."
    return {"kind": "leftovers", "title": "Leftover processes were ended", "cause": cause, "next_step": next_step}
