"""Slurm's own commands: submits, looks at and cancels jobs. Its words for states and reasons are shown as they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import PreflightError
from core.no_window import NO_WINDOW

_LIMIT_S: Final = 30.0  # for an answer of the cluster's controller
_WAITING: Final = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING: Final = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
_FIELD: Final = re.compile(r"(?:^|\s)([A-Z][\w/:]*)=(\S*)")


@dataclass(frozen=True, slots=True)
class JobState:
    """A job.

    Attributes:
        number: Its number.
        state: Slurm's word, such as ``PENDING``.
        reason: Slurm's word for why it waits.
        nodes: Where it runs or ran, such as ``n[1-2]``.
        exit_code: The batch file's.
        signal: What ended it; 0: nothing did.
        restarts: How often Slurm has queued it again.
        start: When it is expected to start, as Slurm writes it; empty: unknown.
    """

    number: str
    state: str
    reason: str = ""
    nodes: str = ""
    exit_code: int = 0
    signal: int = 0
    restarts: int = 0
    start: str = ""

    @property
    def is_waiting(self) -> bool:
        return self.state in _WAITING

    @property
    def has_ended(self) -> bool:
        """For good."""
        return self.state not in _WAITING | _RUNNING

    @property
    def text(self) -> str:
        again = f" (restart {self.restarts})" if self.restarts else ""
        where = f" on {self.nodes}" if self.nodes else ""
        code = f"ended by signal {self.signal}" if self.signal else f"exit code {self.exit_code}"
        if self.is_waiting:
            why = f": {self.reason}" if self.reason else ""
            start = f" It is expected to start at {self.start}." if self.start else ""
            return f"Job {self.number} is waiting{again}{why}.{start}"
        if not self.has_ended:
            return f"Job {self.number} is {self.state.lower()}{where}{again}."
        ended = {"COMPLETED": "has completed", "CANCELLED": "was cancelled", "FAILED": f"failed{where}: {code}"}
        return f"Job {self.number} {ended.get(self.state, f'ended as {self.state}{where}')}."

    @property
    def next_step(self) -> str:
        """The next step after its end; empty if none is needed."""
        if not self.has_ended or self.state == "COMPLETED":
            return ""
        return "Read the job's log." if self.state == "FAILED" else "Submit it again to continue the run."


def has_slurm() -> bool:
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
    """A job's state; None where Slurm no longer knows it, which is minutes after its end.

    Raises:
        PreflightError: Slurm does not answer.
    """
    done = _run("scontrol", "--oneliner", "show", "job", number)
    if done.returncode != 0 and "Invalid job id" not in done.stderr:
        raise PreflightError(
            f"scontrol says: {_reason(done)}",
            "The job itself is not affected. Try again when the controller answers.",
            title="Slurm does not answer",
        )
    return job_of_scontrol(done.stdout) if done.returncode == 0 else None


def cancel(number: str) -> None:
    """Cancels a job.

    Raises:
        PreflightError: Slurm refuses; says why.
    """
    done = _run("scancel", number)
    if done.returncode != 0:
        raise PreflightError(f"scancel says: {_reason(done)}", "Try again.", title="The job was not cancelled")


def job_of_scontrol(line: str) -> JobState | None:
    """The job in a line of ``scontrol --oneliner show job``, which all versions print alike; None: it holds none."""
    values = {name: "" if text in ("(null)", "Unknown", "None") else text for name, text in _FIELD.findall(line)}
    if "JobId" not in values or "JobState" not in values:
        return None
    found = re.fullmatch(r"(\d+):(\d+)", values.get("ExitCode", ""))
    code, signal = (int(found[1]), int(found[2])) if found else (0, 0)
    restarts = values.get("Restarts", "")
    return JobState(
        values["JobId"],
        values["JobState"].partition("+")[0],
        reason=values.get("Reason", ""),
        nodes=values.get("NodeList", ""),
        exit_code=code,
        signal=signal,
        restarts=int(restarts) if restarts.isdecimal() else 0,
        start=values.get("StartTime", ""),
    )


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
