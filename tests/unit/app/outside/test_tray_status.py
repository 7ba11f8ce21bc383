"""The tray icon's state and tooltip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.outside.tray import LONGEST_TIP, tray_status
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = pytest.mark.windows


def entry(name: str, state: str = "training", **changes: Any) -> RunEntry:
    return RunEntry(Path(name), RunState(**{"run_id": name, "state": state, "step": 1, "total_steps": 4, **changes}))


def tray(*entries: RunEntry) -> str:
    return tray_status(entries, lambda path: path.name)


def test_the_tray_names_the_newest_live_run_and_counts_them() -> None:
    assert tray(entry("a", "finished"), RunEntry(Path("x"), None, "damaged")) == ""
    assert tray(entry("a", step=45, total_steps=100)) == "a: training, 45 %"
    assert tray(entry("a", created=1.0), entry("b", "starting", created=2.0, step=0)) == "2 runs: b: starting"
    assert len(tray(entry("long " * 60), entry("b"))) <= LONGEST_TIP
    trouble = entry("c", created=9.0, trouble={"title": "The disk is full"})
    assert tray(entry("a", "stopping"), trouble) == "2 runs: c: needs you, 25 %"
