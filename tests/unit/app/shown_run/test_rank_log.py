"""A log that is followed: every line once, as a terminal would show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.shown_run import rank_log
from app.shown_run.rank_log import LogChoice, LogLine, LogTail, RankLog, output_level, printed
from core.run_folder.log_times import note_size

pytestmark = pytest.mark.windows


@pytest.fixture
def log(qapp: QApplication) -> Iterator[RankLog]:
    made = RankLog(qapp)
    yield made
    made.close()


def texts(log: RankLog) -> list[str]:
    return [line.text for line in log.lines()]


def event(text: str, ts: float) -> LogLine:
    return LogLine(text, ts, order=ts)


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


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_text("".join(f"line {n:05d}\n" for n in range(500)), encoding="utf-8", newline="\n")
    tail = LogTail(path, 1000)
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
    assert output_level(text) == level


def test_a_file_is_followed_and_its_last_lines_are_kept(
    log: RankLog, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"one\n")
    with qtbot.waitSignal(log.appended):
        log.open(LogChoice((path,)))
    with qtbot.waitSignal(log.appended), path.open("ab") as file:
        file.write(b"two\nthree\n")
    assert texts(log) == ["one", "two", "three"]
    monkeypatch.setattr(rank_log, "MAX_LINES", 2)
    assert texts(log) == ["two", "three"]
    log.close()
    assert texts(log) == []


def test_the_log_of_all_is_in_the_order_of_time(log: RankLog, tmp_path: Path, qtbot: QtBot) -> None:
    """Printed lines have the times that the host kept; the host's own log, which repeats the events, stands alone."""
    host, rank = tmp_path / "host.log", tmp_path / "rank0.log"
    host.write_text("2026-05-01 10:00:00.000 INFO core.host: phase: planning\n", encoding="utf-8")
    rank.write_bytes(b"of an early version\none\ntwo\nthree\nunfinished")
    for size, ts in ((20, 1000.5), (28, 1001.0), (34, 1003.0), (44, 1004.0)):
        note_size(rank, size, ts)
    log.set_events([event("Starting.", 1000.0)])
    log.open(LogChoice((rank, host)))
    qtbot.waitUntil(lambda: len(log.lines()) == 5)
    with qtbot.waitSignal(log.replaced):
        log.add_events([event("Step 1: evaluated.", 1000.9)])
    assert [(line.ts, line.text) for line in log.lines()] == [
        (1000.0, "Starting."), (None, "of an early version"), (1000.9, "Step 1: evaluated."),
        (1001.0, "one"), (1001.0, "two"), (1003.0, "three"),
    ]  # fmt: skip
    log.open(LogChoice((rank,)))
    qtbot.waitUntil(lambda: texts(log) == ["of an early version", "one", "two", "three"])
    log.open(LogChoice((host,)))
    qtbot.waitUntil(lambda: texts(log) == ["2026-05-01 10:00:00.000 INFO core.host: phase: planning"])


def test_a_line_that_is_a_little_late_is_appended(log: RankLog, tmp_path: Path, qtbot: QtBot) -> None:
    log.open(LogChoice((tmp_path / "rank0.log", tmp_path / "host.log")))
    log.add_events([event("now", 1000.0)])
    with qtbot.assertNotEmitted(log.replaced), qtbot.waitSignal(log.appended) as told:
        log.add_events([event("a second before", 999.0)])
    assert [line.text for line in told.args[0]] == ["a second before"]
    with qtbot.waitSignal(log.replaced):
        log.add_events([event("long before", 900.0)])
    assert texts(log) == ["long before", "a second before", "now"]
