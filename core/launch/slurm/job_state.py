"""`JobState`: what Slurm says of a job, read from the lines that all its versions print. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_WAITING: Final = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING: Final = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
_REASONS: Final = {
    "Resources": "not enough nodes are free",
    "Priority": "other jobs come first",
    "Dependency": "it waits for another job",
    "BeginTime": "its time to begin has not come",
    "Cleaning": "it is being queued again",
    "JobHeldUser": "you hold it; release it with scontrol release",
    "JobHeldAdmin": "an administrator holds it",
    "BadConstraints": "no node has what it asks for; cancel it and ask for less",
    "PartitionTimeLimit": "it asks for more time than the partition gives; cancel it and ask for less",
    "PartitionNodeLimit": "it asks for more nodes than the partition gives; cancel it and ask for fewer",
    "PartitionConfig": "the partition does not have what it asks for; cancel it and ask for less",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "ReqNodeNotAvail": "nodes that it needs are not available",
    "launch_failed_requeued_held": "a node could not start it, so it is held; release it with scontrol release",
}
_FIELD: Final = re.compile(r"(?:^|\s)([A-Z][\w/:]*)=(\S*)")


@dataclass(frozen=True, slots=True)
class JobState:
    """A job.

    Attributes:
        number: Its number.
        state: Slurm's word, such as ``PENDING``.
        reason: Slurm's word for why it waits or has ended.
        partition: Where it waits.
        nodes: Where it runs or ran, such as ``n[1-2]``.
        exit_code: The batch file's.
        signal: What ended it; 0: nothing did.
        restarts: How often Slurm has queued it again.
        start: When it starts or has started, as Slurm writes it; empty: unknown.
        time_limit: Its time limit, as Slurm writes it.
        position, waiting: Its place among those that wait in its partition; 0: unknown.
        again: Why it was queued again, as a clause: "A node failed"; empty: unknown.
    """

    number: str
    state: str
    reason: str = ""
    partition: str = ""
    nodes: str = ""
    exit_code: int = 0
    signal: int = 0
    restarts: int = 0
    start: str = ""
    time_limit: str = ""
    position: int = 0
    waiting: int = 0
    again: str = ""

    @property
    def is_waiting(self) -> bool:
        """It has not begun, or begins again."""
        return self.state in _WAITING

    @property
    def has_ended(self) -> bool:
        """For good."""
        return self.state not in _WAITING | _RUNNING

    @property
    def text(self) -> str:
        """A line for people."""
        job = f"Job {self.number}"
        if self.is_waiting:
            again = f" again (restart {self.restarts})" if self.restarts else ""
            return f"{job} is waiting{again}{self._where()}{self._why()}{self._from()}{self._again()}"
        if self.state == "RUNNING":
            again = f" (restart {self.restarts})" if self.restarts else ""
            return f"{job} is running on {self.nodes}{again}."
        if not self.has_ended:
            return f"{job} is {self.state.lower()}{f' on {self.nodes}' if self.nodes else ''}."
        return f"{job} {self._ended()}."

    def _where(self) -> str:
        place = f" in partition {self.partition}" if self.partition else ""
        return f"{place}, place {self.position} of {self.waiting}" if self.position else place

    def _why(self) -> str:
        if self.reason in ("", "None"):
            return "."
        # Some reasons have details after a comma; those of limits are many, and their own names are plain.
        known = _REASONS.get(self.reason.partition(",")[0])
        return f": {known or self.reason.replace('_', ' ')}."

    def _again(self) -> str:
        if not self.restarts or not self.again:
            return ""
        return f" {self.again}, so the job was queued again; the run continues from its last checkpoint."

    def _from(self) -> str:
        return f" It is expected to start at {self.start}." if self.start else ""

    def _ended(self) -> str:
        where = f" on {self.nodes}" if self.nodes else ""
        ended = {
            "COMPLETED": "has completed",
            "TIMEOUT": f"reached its time limit{f' of {self.time_limit}' if self.time_limit else ''}",
            "CANCELLED": "was cancelled",
            "NODE_FAIL": f"lost a node{where}",
            "PREEMPTED": "was preempted",
            "OUT_OF_MEMORY": f"used more memory than it asked for{where}",
            "FAILED": f"failed{where}: {self._code()}",
        }
        return ended.get(self.state, f"ended as {self.state}")

    def _code(self) -> str:
        return f"ended by signal {self.signal}" if self.signal else f"exit code {self.exit_code}"

    @property
    def next_step(self) -> str:
        """What a person can do about its end; empty where nothing is needed."""
        steps = {
            "TIMEOUT": "Submit it again, with more time if it did not get to a checkpoint.",
            "CANCELLED": "Submit it again to continue the run.",
            "NODE_FAIL": "Submit it again to continue the run.",
            "PREEMPTED": "Submit it again to continue the run.",
            "OUT_OF_MEMORY": "Ask for more memory on each node, or use a smaller batch.",
            "FAILED": "Read the job's log for the reason.",
        }
        return "" if not self.has_ended or self.state == "COMPLETED" else steps.get(self.state, steps["FAILED"])


def job_of_scontrol(line: str) -> JobState | None:
    """The job in a line of ``scontrol --oneliner show job``; None where it holds none."""
    values = dict(_FIELD.findall(line))
    if "JobId" not in values or "JobState" not in values:
        return None
    code, signal = _code_of(values.get("ExitCode", ""))
    restarts = values.get("Restarts", "")
    return JobState(
        values["JobId"],
        values["JobState"].partition("+")[0],
        reason=_known(values.get("Reason", "")),
        partition=_known(values.get("Partition", "")),
        nodes=_known(values.get("NodeList", "")),
        exit_code=code,
        signal=signal,
        restarts=int(restarts) if restarts.isdecimal() else 0,
        start=_known(values.get("StartTime", "")),
        time_limit=_known(values.get("TimeLimit", "")),
    )


SACCT_FIELDS: Final = "JobIDRaw,State,ExitCode,NodeList,Partition"


def job_of_sacct(line: str) -> JobState | None:
    """The job in a line of ``sacct --parsable2`` with `SACCT_FIELDS`; None where it holds none."""
    values = line.strip().split("|")
    if len(values) != len(SACCT_FIELDS.split(",")) or not values[0].isdecimal() or not values[1]:
        return None
    code, signal = _code_of(values[2])
    state = re.split(r"[ +]", values[1])[0]  # "CANCELLED by 1000"
    return JobState(values[0], state, nodes=_known(values[3]), partition=values[4], exit_code=code, signal=signal)


def position_of(number: str, waiting: Sequence[str]) -> tuple[int, int]:
    """A job's place among the numbers of those that wait, by priority, and how many they are; 0 where it is not."""
    numbers = list(dict.fromkeys(word.strip() for word in waiting if word.strip()))
    return (numbers.index(number) + 1, len(numbers)) if number in numbers else (0, len(numbers))


def _known(text: str) -> str:
    return "" if text in ("(null)", "Unknown", "N/A", "None", "None_assigned") else text


def _code_of(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
