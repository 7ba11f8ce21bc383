"""Columns whose files another program holds: nothing is lost, and the run's host does not wait long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import FileInUseError
from core.held_files import BRIEFLY_S
from core.metrics import columns
from core.metrics.column_index import INDEX_NAME, load_index, read_index
from core.metrics.columns import ColumnsWriter, is_current
from core.metrics.metrics_file import MetricsWriter
from tests.helpers.held_file import WINDOWS_ONLY, held, hold_for

pytestmark = [pytest.mark.windows, WINDOWS_ONLY]
HELD_S = 1.0


class Live:
    """A run folder that is appended to as a host does it."""

    def __init__(self, run_dir: Path) -> None:
        self.dir = run_dir
        self.steps = 0
        self.metrics = MetricsWriter(run_dir / "metrics.jsonl")
        self.columns = ColumnsWriter(run_dir)

    def say(self, *values: dict[str, Any]) -> None:
        lines = [json.dumps(value).encode() for value in values]
        self.columns.append(lines, list(values), self.metrics.append(lines))

    def train(self, count: int) -> None:
        for _ in range(count):
            self.steps += 1
            self.say({"ts": 1.0, "event": "step", "rank": 0, "attempt": 1, "step": self.steps, "loss": 1.0})

    def close(self) -> None:
        self.columns.close()
        self.metrics.close()

    def rows(self) -> int:
        index = read_index(self.dir / "columns")
        return 0 if index is None else index.groups["rank0"].rows

    def flush_when_let(self) -> None:
        """As the host's flush a second later."""
        self.columns._held_until = 0.0
        self.columns.flush()


@pytest.fixture
def live(tmp_path: Path) -> Live:
    run = Live(tmp_path)
    run.train(3)
    run.say({"ts": 1.0, "event": "note", "text": "so that there is a file of events"})
    run.columns.flush()
    return run


@pytest.mark.parametrize("name", [INDEX_NAME, "events.jsonl", "rank0/loss.f64", "rank0/step.f64"])
def test_a_file_that_is_held_while_a_run_trains_costs_no_row(live: Live, name: str) -> None:
    with held(live.dir / "columns" / name):
        live.train(5)
        live.say({"ts": 1.0, "event": "note", "text": "another"})
        live.columns.flush()
        live.train(5)
        assert live.columns.problem is None
    live.flush_when_let()
    assert (live.columns.problem, live.rows()) == (None, 13)
    live.close()
    assert is_current(live.dir)
    values = read_index(live.dir / "columns")
    assert values is not None
    assert list(columns.ColumnGroup(live.dir / "columns", values.groups["rank0"]).index().names)


def test_columns_are_opened_once_their_index_is_free(live: Live) -> None:
    """What lost them: the index is refused at the start of a host, and the columns were given up for the whole run."""
    live.train(4)
    live.close()
    timer = hold_for(live.dir / "columns" / INDEX_NAME, 3 * HELD_S)
    again = Live(live.dir)
    timer.join()
    again.steps = live.steps
    again.train(2)
    again.close()
    assert (again.columns.problem, again.rows()) == (None, 9)


def test_closing_waits_for_who_holds_a_column(live: Live) -> None:
    live.train(4)
    timer = hold_for(live.dir / "columns" / "rank0" / "loss.f64", HELD_S)
    live.close()
    timer.join()
    assert (live.columns.problem, live.rows()) == (None, 7)


def test_a_program_that_never_lets_go_ends_the_columns_and_not_the_run(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "HELD_MAX", 4)
    with held(live.dir / "columns" / "rank0" / "loss.f64"):
        live.train(6)
        live.flush_when_let()
        assert live.columns.problem is not None
        assert "another program has it open" in live.columns.problem or "permission" in live.columns.problem
    live.metrics.close()
    again = Live(live.dir)  # the next host catches up
    assert (again.columns.problem, again.rows()) == (None, 9)
    again.close()


def test_a_held_index_is_not_taken_for_a_damaged_one(live: Live) -> None:
    live.close()
    with held(live.dir / "columns" / INDEX_NAME):
        assert read_index(live.dir / "columns") is None
        with pytest.raises(FileInUseError):
            load_index(live.dir / "columns")
    assert is_current(live.dir)
    assert BRIEFLY_S < HELD_S
