"""A job's log as it grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.launch.slurm.job_log import JobLog, cause_in, why_again


def test_whole_lines_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    log = JobLog(path)
    assert log.read() == []
    path.write_bytes(b"one\n\ntw")
    assert log.read() == ["one"]
    with path.open("ab") as file:
        file.write(b"o\n1 %\r100 %\n\xff\n")
    assert log.read() == ["two", "100 %", "�"]
    path.write_bytes(path.read_bytes() + b"x" * 5_000)
    assert log.read() == ["x" * 4_000], "a line without an end is shown too"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026 DUE TO NODE FAILURE, SEE … ***\n", "A node failed"),
        ("slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026 DUE TO PREEMPTION ***\n", "It was preempted"),
        (
            "DUE TO NODE FAILURE\nstep 1\nThe job waits in the queue again and will continue it.\n",
            "The run was to end and has saved a checkpoint",
        ),
        ("DUE TO NODE FAILURE\n" + "step\n" * 30, ""),
        ("", ""),
    ],
)
def test_why_a_job_was_queued_again(text: str, cause: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    assert why_again(path) == ""
    path.write_text("x" * 50_000 + "\n" + text, encoding="utf-8")
    assert why_again(path) == cause_in(text) == cause
