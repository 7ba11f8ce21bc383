"""A panel on real run folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.runs.run_list import RunListModel
from app.runs.run_scanner import RunScanner
from app.runs.runs_panel import RunsPanel
from core.processes.identity import own
from core.run_folder.notes import RunNotes, write_notes
from tests.helpers.synthetic_run import make_run

MakePanel = Callable[[], RunsPanel]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs, the newest first: live, failed, PPO, pinned below all of them by date."""
    folder = tmp_path / "runs"
    error = {"title": "Rank 1", "cause": "line 6: NaN", "next_step": "Fix it."}
    make_run(folder / "live", state="training", created=400.0, updated=400.0, host=own(), step=5, total_steps=10)
    make_run(folder / "failed", state="failed", created=300.0, error=error)
    make_run(folder / "ppo", created=200.0, recipe="clstm_ppo", loss=-0.02)
    make_run(folder / "old", created=100.0, loss=1.5)
    write_notes(folder / "old", RunNotes(name="the old one", tags=("night",), note="Keep."))
    return folder


@pytest.fixture
def panel(runs: Path, qtbot: QtBot) -> Iterator[RunsPanel]:
    """The panel that shows them."""
    model = RunListModel()
    model.show(RunScanner(runs).scan())
    panel = RunsPanel(model)
    qtbot.addWidget(panel)
    panel.resize(260, 500)
    panel.show()
    panel.activateWindow()
    yield panel
    panel.close()
