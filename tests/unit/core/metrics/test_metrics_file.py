from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.metrics.metrics_file import MetricsTail, MetricsWriter, repair, whole_bytes

pytestmark = pytest.mark.windows


def test_lines_come_back_whole_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsWriter(path) as writer:
        assert writer.append([b'{"a":1}', b'{"a":2}\n']) == path.stat().st_size == 16
        assert writer.append([]) == 16
        tail = MetricsTail(path)
        assert tail.read() == [b'{"a":1}', b'{"a":2}']
        assert tail.read() == []
        writer.append([b'{"a":3}'])
        assert tail.read() == [b'{"a":3}']
        assert tail.offset == 24
        writer.sync()
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n{"a":3}\n'


def test_a_tail_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    assert tail.read() == []
    path.write_bytes(b'{"a":1}\n{"a"')
    assert tail.read() == [b'{"a":1}']
    assert tail.read() == []
    with path.open("ab") as file:
        file.write(b":2}\n")
    assert tail.read() == [b'{"a":2}']


@pytest.mark.parametrize("limit", [1, 7, 8, 9, 100])
def test_a_long_file_is_read_in_pieces(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [b"x" * (n % 23) for n in range(200)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    tail = MetricsTail(path)
    read: list[bytes] = []
    while piece := tail.read(limit):
        read += piece
    assert read == lines


@pytest.mark.parametrize("torn", [b"", b"{", b'{"a": "' + b"x" * 200_000])
def test_a_torn_last_line_is_cut_off_on_opening(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"a":1}\n' + torn)
    with MetricsWriter(path) as writer:
        assert writer.append([]) == 8
        writer.append([b'{"a":2}'])
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'


def test_a_file_of_one_torn_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"no newline")
    assert repair(path) == 0
    assert path.read_bytes() == b""


def test_the_copy_gets_the_same_lines(tmp_path: Path) -> None:
    copy = tmp_path / "logs ä" / "copy.jsonl"
    with MetricsWriter(tmp_path / "metrics.jsonl", log_file=copy) as writer:
        writer.append([b"1", b"2"])
        assert writer.copy_problem is None
    assert copy.read_bytes() == b"1\n2\n"


def test_a_copy_that_fails_does_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with MetricsWriter(tmp_path / "metrics.jsonl", log_file=tmp_path / "folder") as writer:
        writer.append([b"1"])
        assert writer.copy_problem is not None
        assert "Training continues" in writer.copy_problem
    assert (tmp_path / "metrics.jsonl").read_bytes() == b"1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_full_disk_ends_the_copy_alone(tmp_path: Path) -> None:
    (tmp_path / "copy").symlink_to("/dev/full")
    with MetricsWriter(tmp_path / "metrics.jsonl", log_file=tmp_path / "copy") as writer:
        writer.append([b"1"])
        writer.append([b"2"])
        assert writer.copy_problem is not None
        assert "disk is full" in writer.copy_problem
    assert (tmp_path / "metrics.jsonl").read_bytes() == b"1\n2\n"


def test_a_folder_in_the_files_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(RankdeckError):
        MetricsWriter(tmp_path / "metrics.jsonl")


def test_a_reader_beside_the_writer_gets_every_line_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    count = 3000
    read: list[bytes] = []
    done = threading.Event()

    def follow() -> None:
        tail = MetricsTail(path)
        while True:
            last = done.is_set()
            lines = tail.read()
            read.extend(lines)
            if last and not lines:
                return

    reader = threading.Thread(target=follow)
    reader.start()
    with MetricsWriter(path) as writer:
        for number in range(count):
            writer.append([b"%d" % number])
    done.set()
    reader.join(timeout=30)
    assert read == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize(("content", "whole"), [(b"", 0), (b"half", 0), (b"a\n", 2), (b"a\nhalf", 2)])
def test_the_whole_lines_end_before_an_unfinished_one(tmp_path: Path, content: bytes, whole: int) -> None:
    path = tmp_path / "metrics.jsonl"
    assert whole_bytes(path) == 0
    path.write_bytes(content)
    assert whole_bytes(path) == whole
    assert path.read_bytes() == content
