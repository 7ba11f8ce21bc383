"""Times of a log: which of its lines were there when."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.files.links import LinkError
from core.run_folder import log_times
from core.run_folder.log_times import LogTimes, note_size, read_log_times, times_file
from tests.helpers.links import link

pytestmark = pytest.mark.windows


def test_a_line_has_the_time_of_the_first_size_that_holds_it(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    assert read_log_times(log) == LogTimes() and LogTimes().of(10) is None
    for ts, size in ((100.0, 20), (101.0, 50), (103.5, 90)):
        note_size(log, size, ts)
    times = read_log_times(log)
    assert [times.of(end) for end in (5, 20, 21, 50, 51, 90, 91)] == [None, None, 101.0, 101.0, 103.5, 103.5, None]


def test_a_log_that_began_again_and_damaged_lines(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    text = b"1 50\nhalf\n2 x\nnan 60\n\xff\xff 70\n3 0\n4 30\n5 4"  # the last line was cut off
    times_file(log).write_bytes(text)
    assert read_log_times(log) == LogTimes([0, 30], [3.0, 4.0])


def test_of_a_long_file_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "rank0.log"
    for second in range(200):
        note_size(log, 10 * second, 1e9 + second)
    monkeypatch.setattr(log_times, "READ_BYTES", 400)
    times = read_log_times(log)
    assert 10 < len(times.sizes) < 40 and times.of(1990) == 1e9 + 199
    assert times.of(5) is None, "what is older than the part that was read has no time"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    link(times_file(tmp_path / "rank0.log"), tmp_path / "elsewhere")
    with pytest.raises(LinkError):
        note_size(tmp_path / "rank0.log", 1, 1.0)
    assert not (tmp_path / "elsewhere").exists()
