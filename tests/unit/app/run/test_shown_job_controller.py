"""The job of the shown run, with Slurm's commands played by scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.run.shown_job_controller import JobText, job_text
from core.errors import RankdeckError
from core.launch.slurm.submission import FOLDER, NUMBER_FILE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripts of sh")
Say = Callable[[str], None]


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Slurm, whose scontrol prints this line."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def play(name: str, body: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)

    play("sbatch", "exit 1")
    return lambda line: play("scontrol", f"echo '{line}'")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Of a run that was submitted."""
    folder = tmp_path / "run" / FOLDER
    folder.mkdir(parents=True)
    (folder / NUMBER_FILE).write_text(json.dumps({"number": "7", "name": "run", "submitted": 1.0}), encoding="utf-8")
    return folder.parent


def test_a_job_that_waits(scontrol: Say, run_dir: Path) -> None:
    scontrol("JobId=7 JobState=PENDING Reason=Priority Restarts=1 Partition=all")
    assert job_text(run_dir) == JobText("Job 7 is waiting (restart 1): Priority.", is_going=True)


def test_an_end_that_a_person_has_to_know_of(scontrol: Say, run_dir: Path) -> None:
    scontrol("JobId=7 JobState=NODE_FAIL NodeList=n1 ExitCode=0:0")
    assert job_text(run_dir) == JobText("Job 7 ended as NODE_FAIL on n1. Submit it again to continue the run.")
    scontrol("JobId=7 JobState=COMPLETED ExitCode=0:0")
    assert job_text(run_dir) == JobText()


def test_runs_without_a_job_and_computers_without_slurm(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert job_text(tmp_path) == JobText()
    assert job_text(run_dir) == JobText("Submitted as job 7 to a Slurm that is not on this computer.")


def test_a_controller_that_is_away(scontrol: Say, run_dir: Path) -> None:
    scontrol("'; echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; echo '")
    with pytest.raises(RankdeckError, match="scontrol says"):
        job_text(run_dir)
