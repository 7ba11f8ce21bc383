"""Log watch: each growth of a log is noted once, over attempts and whatever cannot be written."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from core.host.states import AttemptPhase
from core.host.watches.log_watch import LOOK_EVERY_S, LogWatch
from core.run_folder.log_times import read_log_times, times_file


def test_growth_is_noted_and_a_later_attempt_continues(tmp_path: Path) -> None:
    log, other = tmp_path / "rank0.log", tmp_path / "rank1.log"

    async def attempt() -> None:
        watch = LogWatch([log, other])
        await watch.begin()
        with log.open("ab") as file:
            file.write(b"a line\n")
        watch.tick(100.0, AttemptPhase.TRAINING)
        await watch.close()
        await watch.close()
        with log.open("ab") as file:
            file.write(b"another\n")
        watch.tick(100.0 + LOOK_EVERY_S / 2, AttemptPhase.TRAINING)
        await watch.close()

    asyncio.run(attempt())
    first = read_log_times(log)
    assert list(first.sizes) == [0, 7, 15] and first.of(7) is not None
    assert list(read_log_times(other).sizes) == [0]
    with log.open("ab") as file:
        file.write(b"last word before the host was killed\n")
    os.utime(log, (2e9, 2e9))
    asyncio.run(attempt())
    second = read_log_times(log)
    assert list(second.sizes) == [0, 7, 15, 52, 59, 67] and second.of(52) == 2e9


def test_a_log_whose_times_cannot_be_kept_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "rank0.log"
    times_file(log).mkdir()
    asyncio.run(LogWatch([log]).begin())
    assert "rank0.log" in caplog.text
