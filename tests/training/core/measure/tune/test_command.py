"""`rankdeck tune`: its JSON, Ctrl+C, and a run that trains beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core.cli.entry import main
from core.config import RunConfig
from core.processes.identity import own
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
RECIPE = Path(__file__).parents[4] / "helpers" / "recipes" / "failing_trial"
FLAGS = [
    "--recipe",
    str(RECIPE),
    "--devices",
    "cpux2",
    "--mode",
    "ddp",
    "--batch-size",
    "1",
    "--global-batch-size",
    "32",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that the model is measured once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(home))


def test_what_is_found_is_printed_with_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *FLAGS, "--seconds", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [trial["batch_size"] for trial in found["trials"]][:2] == [1, 2]
    assert found["recommended"]["batch_size"] > 1 and found["gain"] > 1.2
    assert found["flags"][:2] == ["--batch-size", str(found["recommended"]["batch_size"])]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_ctrl_c_prints_what_was_found_and_leaves_no_process() -> None:
    command = [sys.executable, "-m", "core", "tune", *FLAGS, "--seconds", "300", "--set", "what=hang"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        ranks: list[psutil.Process] = []
        deadline = time.monotonic() + 200
        while len(ranks) < 2 and time.monotonic() < deadline:
            ranks = [child for child in psutil.Process(process.pid).children(recursive=True) if is_rank(child)]
            time.sleep(0.05)
        assert len(ranks) == 2
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output and ("Stopped early" in output or "No settings could be measured" in output)
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)


def is_rank(process: psutil.Process) -> bool:
    try:
        return "workers.programs.measure_main" in process.cmdline()
    except psutil.Error:
        return False


def test_nothing_is_tried_beside_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore.create(tmp_path / "runs", RunConfig(), tmp_path / "runs" / "night")
    store.write_state(RunState("night", state="training", host=own()))
    assert main(["tune", *FLAGS, "--runs-dir", str(tmp_path / "runs")]) == 3
    assert "night is training" in capsys.readouterr().err


def test_too_short_a_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *FLAGS, "--seconds", "1"]) == 2
    assert "Give 10 or more" in capsys.readouterr().err
