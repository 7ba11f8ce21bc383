"""A job's log as it grows."""

from __future__ import annotations

from pathlib import Path

from core.launch.slurm.job_log import JobLog


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
