"""Slurm in the window: New run's settings are submitted, the run is shown while srun runs it, and its job cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.slurm_control import job_lines
from core.launch.slurm.submission import submissions
from core.run_folder.store import RunStore, list_runs
from tests.helpers.slurm import cluster, why_not
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, open_window

__all__ = ["open_window"]
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.qt_log_ignore(*OFFSCREEN_NOISE.args, "This plugin does not support raise", extend=True),
]
LIMIT_MS = 90_000


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with cluster() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        root = Path(__file__).resolve().parents[3]
        monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'workers' / 'sdk'}")
        yield


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm is here")
@pytest.mark.usefixtures("slurm")
def test_new_run_is_submitted_shown_and_cancelled(
    open_window: OpenWindow, qtbot: QtBot, runs_dir: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("All the samples there are.\n" * 2_000, encoding="utf-8")
    rankdeck = open_window()
    window, sheet = rankdeck.window, rankdeck.window.new_run
    window.actions_.new_run.setChecked(True)
    assert sheet.header.slurm.isVisible()
    sheet.data.set_path(str(text))
    qtbot.waitUntil(lambda: rankdeck.drafting.latest.run is not None, timeout=LIMIT_MS)
    sheet.header.slurm.click()
    dialog = rankdeck._slurm.dialog
    assert dialog is not None
    dialog.gpus.setValue(0)
    dialog.partition.setText("nowhere")
    dialog.submit.click()
    qtbot.waitUntil(lambda: "invalid partition" in dialog.notice.text, timeout=LIMIT_MS)
    assert list(runs_dir.iterdir()) == []
    dialog.partition.setText("all")
    dialog.submit.click()
    qtbot.waitUntil(lambda: bool(list_runs(runs_dir)), timeout=LIMIT_MS)
    ((run_dir, made),) = submissions(runs_dir)
    rankdeck.showing.show(run_dir)
    qtbot.waitUntil(lambda: RunStore(run_dir).state().step > 0, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: window.actions_.stop.isEnabled(), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: f"Job {made.number} is running on" in window.header.job.full_text, timeout=LIMIT_MS)
    (line,) = job_lines(runs_dir)
    assert line.name == made.name and line.is_going and "is running on" in line.text
    dialog.cancel_requested.emit(run_dir)
    qtbot.waitUntil(lambda: not RunStore(run_dir).state().is_live, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: job_lines(runs_dir)[0].can_continue, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: "was cancelled. Submit it again" in window.header.job.full_text, timeout=LIMIT_MS)
    dialog.close()


@pytest.mark.skipif(not why_not().startswith("needs Slurm"), reason="Slurm is here")
def test_without_slurm_new_run_does_not_offer_it(open_window: OpenWindow) -> None:
    rankdeck = open_window()
    rankdeck.window.actions_.new_run.setChecked(True)
    assert not rankdeck.window.new_run.header.slurm.isVisible()
