"""The sink: disk first, in order, and nothing lost when the disk refuses for a while."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import PreflightError
from core.host.metrics import sink
from core.host.metrics.sink import BackgroundColumns, MetricsSink
from core.metrics.column_index import read_index
from core.metrics.columns import is_current
from core.metrics.metrics_file import MetricsWriter

LIMIT_S = 60.0


class FullDisk(MetricsWriter):
    """A real metrics file on a disk that is full while a test says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_full = False
        self.refused = threading.Event()

    def append(self, lines: Any) -> int:
        if self.is_full:
            self.refused.set()
            raise PreflightError("The disk is full.", "Free some space.")
        return super().append(lines)


class Columns(BackgroundColumns):
    """Columns that only note what they are given."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.closed = False

    def append(self, lines: Any, parsed: Any, source_bytes: int) -> None:
        del parsed, source_bytes
        self.taken += lines

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True


class Place:
    """A sink over a file in a test's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metrics.jsonl"
        self.disk = FullDisk(self.path)
        self.columns = Columns()
        self.sizes: list[int] = []
        self.troubles: list[str | None] = []
        self.sink = MetricsSink(self.disk, self.columns, self.sizes.append, self.troubles.append)

    def put(self, *numbers: int) -> None:
        self.sink.put([f'{{"n":{n}}}'.encode() for n in numbers], [{"n": n} for n in numbers])

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def text(self) -> bytes:
        return self.path.read_bytes()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(sink, "RETRY_S", 0.02)
    return Place(tmp_path)


def test_lines_are_on_the_disk_before_anybody_hears_of_them(place: Place) -> None:
    heard: list[bytes] = []
    place.sink._on_written = lambda size: heard.append(place.text()[:size])
    place.put(1, 2)
    place.until(lambda: heard == [b'{"n":1}\n{"n":2}\n'])
    assert place.sink.close(1.0) == 0
    assert place.columns.taken == [b'{"n":1}', b'{"n":2}'] and place.columns.closed


def test_a_full_disk_is_said_waited_for_and_loses_nothing(place: Place) -> None:
    place.put(1)
    place.until(lambda: place.sink.pending_bytes == 0)
    place.disk.is_full = True
    place.put(2)
    assert place.disk.refused.wait(LIMIT_S)
    place.put(3)
    assert place.troubles[0] == "The disk is full." and place.sink.pending_bytes == 16
    place.disk.is_full = False
    place.until(lambda: place.sink.pending_bytes == 0)
    assert place.troubles[-1] is None
    assert place.sink.close(1.0) == 0
    assert place.text() == b'{"n":1}\n{"n":2}\n{"n":3}\n'


def test_a_disk_that_stays_full_is_given_up_at_the_end_and_the_loss_is_counted(place: Place) -> None:
    place.put(1)
    place.until(lambda: place.sink.pending_bytes == 0)
    place.disk.is_full = True
    place.put(2, 3)
    place.put(4)
    assert place.sink.close(0.1) == 3
    assert place.text() == b'{"n":1}\n'


def test_settled_is_what_was_put_before_and_a_full_disk_is_not_waited_for(place: Place) -> None:
    synced: list[bytes] = []
    place.disk.sync = lambda: synced.append(place.text())  # type: ignore[method-assign]
    assert place.sink.settle(LIMIT_S), "nothing was put"
    for number in range(50):
        place.put(number)
        assert place.sink.settle(LIMIT_S)
        assert synced[-1].endswith(f'{{"n":{number}}}\n'.encode())
    place.disk.is_full = True
    place.put(50)
    assert not place.sink.settle(0.1)
    place.disk.is_full = False
    assert place.sink.settle(LIMIT_S) and synced[-1].endswith(b'{"n":50}\n')
    assert place.sink.close(1.0) == 0
    assert place.sink.settle(LIMIT_S), "what is closed is settled"


def step(number: int) -> dict[str, Any]:
    return {"ts": 1.0, "event": "step", "rank": 0, "attempt": 1, "step": number}


def rows(run_dir: Path) -> int:
    index = read_index(run_dir / "columns")
    return 0 if index is None or "rank0" not in index.groups else index.groups["rank0"].rows


def test_no_line_is_missed_or_taken_twice(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    metrics.append([json.dumps(step(number)).encode() for number in range(1, 1001)])
    columns = BackgroundColumns(tmp_path)
    deadline = time.monotonic() + LIMIT_S
    written = 1000
    while written == 1000 or rows(tmp_path) != written:  # lines go on coming until all are in the columns
        written += 1
        value = step(written)
        line = json.dumps(value).encode()
        columns.append([line], [value], metrics.append([line]))
        columns.flush()
        time.sleep(0.002)
        assert time.monotonic() < deadline
    columns.close()
    metrics.close()
    assert rows(tmp_path) == written
    assert is_current(tmp_path)


def test_a_folder_that_takes_no_columns_stops_nothing(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    (tmp_path / "columns").write_text("a file in the way", encoding="utf-8")
    columns = BackgroundColumns(tmp_path)
    value = step(1)
    line = json.dumps(value).encode()
    columns.append([line], [value], metrics.append([line]))
    columns.flush()
    columns.close()
    metrics.close()
    # Columns there may be: an opener that comes after the line makes new ones in place of what was in the way.
    assert (tmp_path / "metrics.jsonl").read_bytes() == line + b"\n"
