"""Submitted runs: the batch file, the job's log and its number, in a folder of the run's folder."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from core.errors import PreflightError, StateFileError
from core.files.atomic import explained, read_text, write_atomic
from core.held_files import read_utf8
from core.launch.slurm.batch_file import FOLDER, BatchJob, batch_file
from core.launch.slurm.commands import cancel, look, submit
from core.launch.slurm.job_log import why_again
from core.launch.slurm.job_state import JobState
from core.parsing import ParseError, parse_json
from core.recipes.outside_code import OutsideCodeError, known_batch_file
from core.records import RecordError, read_record

NUMBER_FILE: Final = "job.json"
BATCH_FILE: Final = "job.sbatch"
LOG: Final = "job.log"
_MAX_BATCH_BYTES: Final = 1 << 20
_NUMBER: Final = re.compile(r"\d{1,18}(?:[_+.]\w{1,18})?", re.ASCII)
"""A number of Slurm's: anything else, on the command line of scancel, could be an option."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A run's job.

    Attributes:
        number: The job's, in Slurm.
        name: The run's.
        submitted: When, in seconds since 1970.
    """

    number: str
    name: str
    submitted: float


def log_of(run_dir: Path) -> Path:
    """Where a submitted run's job writes what it prints."""
    return run_dir / FOLDER / LOG


def batch_file_of(run_dir: Path) -> Path:
    """A submitted run's batch file."""
    return run_dir / FOLDER / BATCH_FILE


def submit_run(job: BatchJob, run_dir: Path) -> Submission:
    """Writes a run's batch file and submits it; where Slurm refuses it, all is as it was before.

    Raises:
        PreflightError: Slurm refuses it, or the folder cannot be written.
    """
    folder = run_dir / FOLDER
    file = folder / BATCH_FILE
    before = read_utf8(file) if file.exists() else None
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        text = batch_file(job)
        write_atomic(file, text, mode=0o755)
        known_batch_file(text).remember()
        return submit_again(run_dir, accepted=True)
    except Exception:
        if before is not None:
            write_atomic(file, before, mode=0o755)
            raise
        file.unlink(missing_ok=True)
        for made in (folder, run_dir):
            if not any(made.iterdir()):
                made.rmdir()
        raise


def submit_again(run_dir: Path, *, accepted: bool = False) -> Submission:
    """Submits a run's batch file, which continues the run where there is one.

    Raises:
        OutsideCodeError: It was not written on this machine, and the person has not accepted it.
        PreflightError: As `submit_run`.
    """
    file = batch_file_of(run_dir)
    if not accepted and not known_batch_file(read_text(file, limit_bytes=_MAX_BATCH_BYTES)).is_known:
        raise OutsideCodeError(
            f"{file} was not written on this machine, and it is a program that the cluster's nodes would run.",
            "Say what the job is to have, such as its time limit: then a new file is written.",
            option=f"rankdeck resume {run_dir.name} --slurm --time 4:00:00",
        )
    made = Submission(submit(batch_file_of(run_dir)), run_dir.name, time.time())
    try:
        write_atomic(run_dir / FOLDER / NUMBER_FILE, json.dumps(asdict(made)) + "\n")
    except PreflightError:
        cancel(made.number)  # nothing would name the job, and it would train unseen
        raise
    return made


def read_submission(run_dir: Path) -> Submission | None:
    """A run's job; None where it was not submitted.

    Raises:
        StateFileError: The file is damaged.
    """
    path = run_dir / FOLDER / NUMBER_FILE
    try:
        values: Any = parse_json(read_utf8(path))
        made = read_record(Submission, values)
        if _NUMBER.fullmatch(made.number) is None:
            raise RecordError("is not the number of a job", "number")
        return made
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, ParseError, RecordError) as error:
        raise StateFileError(f"{path} cannot be read: {error}.", "squeue lists your jobs.") from None


def look_at(run_dir: Path, made: Submission) -> JobState | None:
    """As `look`; also why Slurm has queued the job again, as far as its log says."""
    job = look(made.number)
    if job is None or not job.is_waiting or not job.restarts:
        return job
    return replace(job, again=why_again(log_of(run_dir)))


def submissions(runs_dir: Path) -> list[tuple[Path, Submission]]:
    """The submitted runs in a folder, newest first; damaged ones are passed over."""
    found = []
    for path in runs_dir.glob(f"*/{FOLDER}/{NUMBER_FILE}"):
        try:
            made = read_submission(path.parent.parent)
        except StateFileError:
            continue
        if made is not None:
            found.append((path.parent.parent, made))
    return sorted(found, key=lambda item: item[1].submitted, reverse=True)
