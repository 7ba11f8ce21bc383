"""Lines of the log: time, source and level as they can be read from what was written."""

from __future__ import annotations

import time

import pytest

from app.shown_run.log_line import HOST, host_lines, output_level, rank_line
from core.machine.devices.names import RankNames

pytestmark = pytest.mark.windows
NAMES = RankNames(("GPU-1", "cpu:0"), {"GPU-1": "GPU 0 · RTX 4090"})
RAW = """\
2026-05-01 10:00:00.250 INFO core.host.metrics.status: phase: CPU 0: preparing data
2026-05-01 10:00:01.000 INFO core.host.lifecycle: state: starting → training
2026-05-01 10:00:01.500 INFO core.host.attempt: rank 0 is process 77 on GPU-1
2026-05-01 10:00:01.500 INFO core.host.ranks: rank 1 has ended with code -9
2026-05-01 10:00:01.500 INFO core.host.metrics.status: phase: spawning
2026-05-01 10:00:02.000 WARNING core.host.attempt: rank 0 has thrown away 3 metrics lines
2026-05-01 10:00:02.500 ERROR core.host.host: broken
Traceback (most recent call last):
2026-05-01 10:00:03.000 INFO core.host.commits.runner: a checkpoint is begun: steps
2026-05-01 10:00:03.000 WARNING core.host.lifecycle: restart 1 of 3: out of memory
2026-05-01 10:00:04.000 INFO core.host.host: the run is finished, exit code 0
2026-05-01 10:00:04.000 INFO core.host.lifecycle: state: training → finished
""".splitlines()


def test_the_hosts_log_as_a_person_reads_it() -> None:
    made = host_lines(RAW, NAMES)
    assert [(line.text, line.level) for line in made] == [
        ("CPU 0: preparing data", "info"),
        ("Training started.", "info"),
        ("Process 77 started on GPU 0", "info"),
        ("The process on CPU 0 exited with code -9", "info"),
        ("Starting a process for each device", "info"),
        ("GPU 0 has thrown away 3 metrics lines", "warning"),
        ("Broken", "error"),
        ("Traceback (most recent call last):", "error"),
    ], "what events of metrics.jsonl report is not repeated"
    first = made[0]
    assert first.rank == HOST and first.ts == time.mktime((2026, 5, 1, 10, 0, 0, 0, 0, -1)) + 0.25
    assert made[-1].ts is None and made[-1].order == made[-2].order


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("step 1 loss 0.5", "info"),
        ("0 errors so far", "info"),
        ("RuntimeError: out of memory", "error"),
        ("  error: no such file", "error"),
        ("[rank0] ERROR cannot open", "error"),
        ("/a/b.py:3: UserWarning: slow", "warning"),
        ("WARNING: no GPU", "warning"),
    ],
)
def test_the_level_of_a_printed_line(text: str, level: str) -> None:
    assert output_level(text) == level and rank_line(text, 1, 5.0).level == level
