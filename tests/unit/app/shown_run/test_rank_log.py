"""A log that is followed: every line once, as a terminal would show it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.shown_run import rank_log
from app.shown_run.log_line import LogLine
from app.shown_run.rank_log import LogChoice, LogTail, RankLog, RankLogModel, printed
from core.machine.devices.names import RankNames
from core.run_folder.log_times import note_size

pytestmark = pytest.mark.windows


def lines(numbers: Iterable[int]) -> list[LogLine]:
    return [LogLine(str(n), order=float(n)) for n in numbers]


def texts(model: RankLogModel) -> list[str]:
    return [model.line(row) for row in range(model.rowCount())]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("10%\r50%\r100% done", "100% done"),
        ("windows\r", "windows"),
        ("a\tb", "a   b"),
        ("\x1b]0;title\x07text", "text"),
        ("x" * 5000, "x" * 4000 + " …"),
    ],
)
def test_printed(raw: str, shown: str) -> None:
    assert printed(raw) == shown


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    tail = LogTail(path)
    assert tail.read() == []
    data = "één\ntwo\nthr".encode()
    with path.open("ab", buffering=0) as file:
        file.write(data[:1])
        assert tail.read() == []
        file.write(data[1:])
        assert tail.read() == ["één", "two"]
        file.write(b"ee\n")
    assert tail.read() == ["three"]
    assert tail.read() == []


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_log, "START_BYTES", 1000)
    path = tmp_path / "rank0.log"
    path.write_text("".join(f"line {n:05d}\n" for n in range(500)), encoding="utf-8", newline="\n")
    tail = LogTail(path)
    lines = tail.read()
    assert lines[-1] == "line 00499"
    assert len(lines) == 90
    assert tail.skipped_bytes == 4500


def test_a_log_that_starts_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"one\ntwo\n")
    tail = LogTail(path)
    tail.read()
    path.write_bytes(b"new\n")
    assert tail.read() == ["new"]


def test_the_model_keeps_the_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_log, "MAX_LINES", 10)
    model = RankLogModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.append(lines(range(7)))
    model.append(lines(range(7, 14)))
    assert [model.line(row) for row in range(model.rowCount())] == [str(n) for n in range(4, 14)]
    model.append(lines(range(100)))
    assert (model.rowCount(), model.line(0)) == (10, "90")
    assert tester.model() is model


def test_find_goes_round_in_both_directions() -> None:
    model = RankLogModel()
    model.append([LogLine(text) for text in ("Error one", "fine", "error two", "fine too")])
    assert model.find("error") == 0
    assert model.find("error", 1) == 2
    assert model.find("error", 3) == 0
    assert model.find("error", 1, backwards=True) == 0
    assert model.find("error", 0, backwards=True) == 0
    assert model.find("fine", 0, backwards=True) == 3
    assert model.find("Error", 1) == 0  # a capital: case matters
    assert model.find("absent") == -1
    assert model.find("") == -1
    assert model.count("fine") == 2


def test_following_a_file(tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"one\n")
    log = RankLog()
    with qtbot.waitSignal(log.appended):
        log.open(LogChoice((path,)))
    with qtbot.waitSignal(log.appended), path.open("ab") as file:
        file.write(b"two\nthree\n")
    assert [log.model.line(row) for row in range(log.model.rowCount())] == ["one", "two", "three"]
    log.close()
    assert log.model.rowCount() == 0


def test_late_lines_come_to_their_place_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RankLogModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.append(lines([1, 2, 6]))
    model.append(lines([0, 4, 7]))
    assert texts(model) == ["0", "1", "2", "4", "6", "7"]
    monkeypatch.setattr(rank_log, "INSERTED_SINGLY", 1)
    model.append(lines([3, 5]))
    assert texts(model) == [str(n) for n in range(8)]
    assert tester.model() is model


HOST_LOG = """\
2026-05-01 10:00:00.000 INFO core.host.metrics.status: phase: planning
2026-05-01 10:00:02.000 INFO core.host.attempt: rank 1 is process 77 on cpu:1
"""


def test_all_puts_the_hosts_log_its_events_and_the_output_of_ranks_in_one_list(tmp_path: Path, qtbot: QtBot) -> None:
    host, rank = tmp_path / "host.log", tmp_path / "rank1.log"
    host.write_text(HOST_LOG, encoding="utf-8")
    rank.write_text("hello\n", encoding="utf-8")
    began = time.mktime((2026, 5, 1, 10, 0, 0, 0, 0, -1))
    os.utime(rank, (began + 3, began + 3))
    log = RankLog()
    log.show_names(RankNames(("cpu:0", "cpu:1")), ())
    log.open(LogChoice((rank, host)))
    qtbot.waitUntil(lambda: log.model.rowCount() == 3)
    log.add_events([LogLine("Step 1: evaluated.", began + 1, order=began + 1)])
    shown = [log.model.shown(row) for row in range(log.model.rowCount())]
    assert shown == [
        "10:00:00  Host   Planning",
        "10:00:01  Host   Step 1: evaluated.",
        "10:00:02  Host   Process 77 started on CPU 1",
        "          CPU 1  hello",
    ]
    log.open(LogChoice((rank,)))
    qtbot.waitUntil(lambda: log.model.rowCount() == 1)
    assert log.model.shown(0) == "hello", "the output of one device stands as it was printed"
    log.open(LogChoice((host,)))
    qtbot.waitUntil(lambda: log.model.rowCount() == 3)
    log.set_events(())
    qtbot.waitUntil(lambda: log.model.rowCount() == 2)
    log.close()


def test_lines_of_an_ended_run_have_the_times_that_its_host_kept(tmp_path: Path, qtbot: QtBot) -> None:
    host, rank = tmp_path / "host.log", tmp_path / "rank0.log"
    host.write_text(HOST_LOG, encoding="utf-8")
    rank.write_bytes(b"of an early version\none\ntwo\nthree\nunfinished")
    began = time.mktime((2026, 5, 1, 10, 0, 0, 0, 0, -1))
    for size, after in ((20, 0.5), (28, 1.0), (34, 3.0), (44, 4.0)):
        note_size(rank, size, began + after)
    log = RankLog()
    log.show_names(RankNames(("cpu:0",)), ())
    log.open(LogChoice((rank, host)))
    qtbot.waitUntil(lambda: log.model.rowCount() == 6)
    assert [log.model.shown(row) for row in range(6)] == [
        "10:00:00  Host   Planning",
        "          CPU 0  of an early version",
        "10:00:01  CPU 0  one",
        "10:00:01  CPU 0  two",
        "10:00:02  Host   Process 77 started on rank 1",
        "10:00:03  CPU 0  three",
    ]
    log.close()


def test_a_printed_line_has_the_time_at_which_it_was_seen(tmp_path: Path, qtbot: QtBot) -> None:
    log = RankLog()
    log.open(LogChoice((tmp_path / "rank0.log", tmp_path / "host.log")))
    qtbot.wait(50)
    (tmp_path / "rank0.log").write_text("hello\n", encoding="utf-8")
    qtbot.waitUntil(lambda: log.model.rowCount() == 1)
    assert log.model.shown(0).split()[1:] == ["rank", "0", "hello"] and log.model.shown(0)[2] == ":"
    log.close()
