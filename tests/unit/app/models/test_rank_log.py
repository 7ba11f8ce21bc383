"""A log that is followed: every line once, as a terminal would show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.models import rank_log
from app.models.rank_log import LogTail, RankLog, RankLogModel, printed

pytestmark = pytest.mark.windows


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
    model.append([str(n) for n in range(7)])
    model.append([str(n) for n in range(7, 14)])
    assert [model.line(row) for row in range(model.rowCount())] == [str(n) for n in range(4, 14)]
    model.append([str(n) for n in range(100)])
    assert (model.rowCount(), model.line(0)) == (10, "90")
    assert tester.model() is model


def test_find_goes_round_in_both_directions() -> None:
    model = RankLogModel()
    model.append(["Error one", "fine", "error two", "fine too"])
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
        log.open(path)
    with qtbot.waitSignal(log.appended), path.open("ab") as file:
        file.write(b"two\nthree\n")
    assert [log.model.line(row) for row in range(log.model.rowCount())] == ["one", "two", "three"]
    log.close()
    assert log.model.rowCount() == 0
