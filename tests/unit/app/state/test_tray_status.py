"""What the icon beside the clock says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.state.task_progress import TaskState
from app.state.tray_status import IDLE, LONGEST_TIP, MOST_RUNS, tray_status
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


def entry(name: str, state: str = "training", **changes: Any) -> RunEntry:
    return RunEntry(Path(name), RunState(**{"run_id": name, "state": state, "step": 45, "total_steps": 100, **changes}))


def name_of(path: Path) -> str:
    return path.name


def test_without_a_live_run_there_is_nothing_to_say() -> None:
    assert tray_status([entry("a", "finished"), RunEntry(Path("x"), None, "damaged")], name_of) == IDLE


def test_one_run_is_named_and_several_are_counted() -> None:
    one = tray_status([entry("a")], name_of)
    assert one.tip == "a: training, 45 %" and one.look is TaskState.NORMAL and one.runs[0].can_stop
    two = tray_status([entry("a", created=1.0), entry("b", "starting", created=2.0, step=0)], name_of)
    assert two.tip == "2 runs: b: starting" and [run.name for run in two.runs] == ["b", "a"]


def test_the_most_urgent_state_is_the_icon_s() -> None:
    stopping = entry("a", "stopping")
    assert tray_status([stopping], name_of).look is TaskState.PAUSED
    assert not tray_status([stopping], name_of).runs[0].can_stop
    assert tray_status([stopping, entry("b")], name_of).look is TaskState.NORMAL
    trouble = entry("c", trouble={"title": "The disk is full"})
    status = tray_status([stopping, entry("b"), trouble], name_of)
    assert status.look is TaskState.ERROR and "c: needs you, 45 %" in {run.text for run in status.runs}


def test_long_names_and_many_runs_have_room() -> None:
    runs = [entry(f"{number} {'long ' * 60}", created=float(number)) for number in range(MOST_RUNS + 2)]
    status = tray_status(runs, name_of)
    assert len(status.runs) == MOST_RUNS and status.more == 2 and len(status.tip) <= LONGEST_TIP
