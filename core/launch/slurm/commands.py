"""Slurm's own commands: submits, looks at and cancels jobs."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from core.errors import PreflightError
from core.launch.slurm.job_state import SACCT_FIELDS, JobState, job_of_sacct, job_of_scontrol, position_of
from core.no_window import NO_WINDOW

_LIMIT_S: Final = 30.0
"""For an answer of the cluster's controller."""


def has_slurm() -> bool:
    """Whether jobs can be submitted on this machine."""
    return shutil.which("sbatch") is not None


def submit(file: Path) -> str:
    """Submits a batch file; returns the job's number.

    Raises:
        PreflightError: There is no Slurm here, or it refuses the job; says why.
    """
    done = _run("sbatch", "--parsable", str(file))
    found = re.match(r"\d+", done.stdout.strip())  # "12", or "12;cluster"
    if done.returncode != 0 or found is None:
        raise PreflightError(
            f"sbatch says: {_reason(done)}",
            "Change what the job asks for. sinfo lists the partitions, their nodes and their time limits.",
            title="Slurm has refused the job",
        )
    return found[0]


def look(number: str) -> JobState | None:
    """A job's state; None where Slurm no longer knows it.

    Raises:
        PreflightError: Slurm does not answer.
    """
    done = _run("scontrol", "--oneliner", "show", "job", number)
    job = job_of_scontrol(done.stdout) if done.returncode == 0 else None
    if job is None and done.returncode != 0 and "Invalid job id" not in done.stderr:
        raise PreflightError(
            f"scontrol says: {_reason(done)}",
            "The job itself is not affected. Try again when the controller answers.",
            title="Slurm does not answer",
        )
    if job is None:  # minutes after its end it is known to accounting alone, where the cluster keeps that
        line = _run("sacct", "-n", "-X", "-P", "-j", number, "-o", SACCT_FIELDS).stdout.strip().splitlines()
        return job_of_sacct(line[-1]) if line else None
    if not job.is_waiting:
        return job
    place = ["-p", job.partition] if job.partition else []
    waiting = _run("squeue", "-h", "-t", "PENDING", "-S", "-p,i", "-o", "%A", *place)
    position, count = position_of(job.number, waiting.stdout.splitlines()) if waiting.returncode == 0 else (0, 0)
    return dataclasses.replace(job, position=position, waiting=count)


def cancel(number: str) -> None:
    """Cancels a job.

    Raises:
        PreflightError: Slurm refuses; says why.
    """
    done = _run("scancel", number)
    if done.returncode != 0:
        raise PreflightError(f"scancel says: {_reason(done)}", "Try again.", title="The job was not cancelled")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
            creationflags=NO_WINDOW,
        )
    except FileNotFoundError:
        if command[0] == "sacct":
            return subprocess.CompletedProcess(command, 1, "", "")
        raise PreflightError(
            f"There is no {command[0]} on this machine.",
            "Submit the job on a machine of the cluster from which jobs are submitted.",
            title="Slurm is not installed here",
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PreflightError(
            f"{command[0]} did not answer ({error}).", "Try again.", title="Slurm does not answer"
        ) from error


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return " ".join(re.sub(r"^\w+: (error: )?", "", line) for line in lines[-2:]) or f"exit code {done.returncode}"
