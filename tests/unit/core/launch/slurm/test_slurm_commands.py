"""Slurm's commands, played by scripts: what they refuse, and answers in the forms of several versions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import PreflightError, StateFileError
from core.launch.slurm import jobs, submission
from core.recipes.outside_code import OutsideCodeError, known_batch_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripts of sh")
Play = Callable[[str, str], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Puts a script in the place of a command; the others are not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(name: str, body: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    return make


def test_without_slurm(play: Play) -> None:
    assert not jobs.has_slurm()
    with pytest.raises(PreflightError, match="no sbatch on this machine"):
        jobs.submit(Path("job"))
    play("sbatch", "echo '12;cluster'")
    assert jobs.has_slurm() and jobs.submit(Path("job")) == "12"


def test_a_refused_job(play: Play) -> None:
    play("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    with pytest.raises(PreflightError, match="sbatch says: invalid partition specified: x"):
        jobs.submit(Path("job"))


def test_a_job_of_long_ago(play: Play) -> None:
    play("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert jobs.look("7") is None


def test_a_controller_that_is_away(play: Play) -> None:
    play("scontrol", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(PreflightError, match="Unable to contact"):
        jobs.look("7")
    play("scancel", "echo 'scancel: error: Access denied' >&2; exit 1")
    with pytest.raises(PreflightError, match="Access denied"):
        jobs.cancel("7")


def test_a_job_whose_number_cannot_be_kept_is_cancelled(play: Play, tmp_path: Path) -> None:
    folder = tmp_path / "run" / submission.FOLDER
    play("sbatch", f'/bin/mkdir -p "{folder / submission.NUMBER_FILE}"; echo 12')  # no file can take its place
    play("scancel", f'echo "$1" > "{tmp_path}/cancelled"')
    with pytest.raises(PreflightError):
        submission.submit_again(tmp_path / "run", accepted=True)
    assert (tmp_path / "cancelled").read_text(encoding="utf-8") == "12\n"


def test_a_batch_file_that_came_with_a_run_is_not_submitted(play: Play, tmp_path: Path) -> None:
    play("sbatch", f'touch "{tmp_path}/ran"; echo 12')
    file = submission.batch_file_of(tmp_path / "run")
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    with pytest.raises(OutsideCodeError, match="not written on this machine"):
        submission.submit_again(tmp_path / "run")
    assert not (tmp_path / "ran").exists()
    known_batch_file("#!/bin/sh\n").remember()
    assert submission.submit_again(tmp_path / "run").number == "12"


@pytest.mark.parametrize("number", ["--user=me", "-u me", "7 8", "", "7;8", "9" * 30])
def test_what_is_no_number_of_a_job_is_never_passed_on(tmp_path: Path, number: str) -> None:
    (tmp_path / submission.FOLDER).mkdir()
    text = json.dumps({"number": number, "name": "x", "submitted": 1.0})
    (tmp_path / submission.FOLDER / submission.NUMBER_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(StateFileError, match="number"):
        submission.read_submission(tmp_path)
