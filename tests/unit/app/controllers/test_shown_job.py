"""The job of the shown run, with Slurm's commands played by scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.controllers.shown_job import JobText, job_text
from core.errors import RankdeckError
from core.launch.slurm.submission import FOLDER, LOG, NUMBER_FILE

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
    play("squeue", "printf '7\\n8\\n'")
    return lambda line: play("scontrol", f"echo '{line}'")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Of a run that was submitted."""
    folder = tmp_path / "run" / FOLDER
    folder.mkdir(parents=True)
    (folder / NUMBER_FILE).write_text(json.dumps({"number": "7", "name": "run", "submitted": 1.0}), encoding="utf-8")
    return folder.parent


def test_its_place_in_the_queue(scontrol: Say, run_dir: Path) -> None:
    scontrol("JobId=7 JobState=PENDING Reason=Priority Partition=all")
    assert job_text(run_dir) == JobText(
        "Job 7 is waiting in partition all, place 1 of 2: other jobs come first.", is_going=True
    )


def test_a_job_that_lost_a_node_and_waits_again(scontrol: Say, run_dir: Path) -> None:
    lines = (
        "step 3\nslurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 04:14 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***\n"
    )
    (run_dir / FOLDER / LOG).write_text(lines, encoding="utf-8")
    scontrol("JobId=7 JobState=PENDING Reason=BeginTime Restarts=1 Partition=all")
    found = job_text(run_dir)
    assert found.is_going and "waiting again (restart 1)" in found.text
    assert "A node failed, so the job was queued again; the run continues from its last checkpoint." in found.text


def test_an_end_that_a_person_has_to_know_of(scontrol: Say, run_dir: Path) -> None:
    scontrol("JobId=7 JobState=NODE_FAIL NodeList=n1 ExitCode=0:0")
    assert job_text(run_dir) == JobText("Job 7 lost a node on n1. Submit it again to continue the run.")
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
