"""What Slurm says of jobs; the lines were printed by Slurm 22.05."""

from __future__ import annotations

import pytest

from core.launch.slurm.jobs import JobState, job_of_scontrol

PENDING = (
    "JobId=2 JobName=a name JobState=PENDING UserId=root(0) Priority=4294901758 Account=(null) QOS=(null) "
    "JobState=PENDING Reason=BeginTime Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 ExitCode=0:0 "
    "RunTime=00:00:00 TimeLimit=00:03:00 StartTime=2026-11-26T23:02:11 EndTime=Unknown Partition=all NodeList= "
    "NumNodes=1-2 Socks/Node=* NtasksPerN:B:S:C=1:0:*:* Command=/runs/a run/job.sbatch StdOut=/runs/a run/job.log"
)
RUNNING = (
    "JobId=1 JobName=j JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 TimeLimit=UNLIMITED "
    "StartTime=2026-11-26T22:46:02 Partition=all NodeList=n[1-2] BatchHost=n1"
)


def test_a_waiting_job() -> None:
    job = job_of_scontrol(PENDING)
    assert job is not None and job.is_waiting and not job.has_ended
    assert job.text == "Job 2 is waiting (restart 1): BeginTime. It is expected to start at 2026-11-26T23:02:11."
    assert JobState("2", "PENDING").text == "Job 2 is waiting."


def test_a_running_job() -> None:
    job = job_of_scontrol(RUNNING)
    assert job is not None and not job.is_waiting and not job.has_ended
    assert job.text == "Job 1 is running on n[1-2]."
    assert JobState("1", "COMPLETING", nodes="n1").text == "Job 1 is completing on n1."


@pytest.mark.parametrize(
    ("state", "code", "text", "has_step"),
    [
        ("COMPLETED", "0:0", "Job 7 has completed.", False),
        ("FAILED", "3:0", "Job 7 failed on n1: exit code 3.", True),
        ("FAILED", "0:9", "Job 7 failed on n1: ended by signal 9.", True),
        ("CANCELLED", "0:0", "Job 7 was cancelled.", True),
        ("TIMEOUT", "0:0", "Job 7 ended as TIMEOUT on n1.", True),
    ],
)
def test_a_job_that_has_ended(state: str, code: str, text: str, has_step: bool) -> None:
    job = job_of_scontrol(f"JobId=7 JobState={state} ExitCode={code} NodeList=n1")
    assert job is not None and job.has_ended
    assert (job.text, bool(job.next_step)) == (text, has_step)


@pytest.mark.parametrize("line", ["", "slurm_load_jobs error: Invalid job id specified", "JobId=7 ExitCode=0:0"])
def test_what_is_no_job(line: str) -> None:
    assert job_of_scontrol(line) is None
