"""Following a run's folder: every line once, whatever is there when the follower comes."""

from __future__ import annotations

import queue
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.run_data import run_follower
from app.run_data.metrics_batch import MetricsBatch
from app.run_data.run_follower import CaughtUp, Kept, OldEvents, Opened, Problem, Progress, RunFollower
from app.run_data.run_series import RunSeries
from app.threads.bridge import Worker
from core.errors import ConnectionRefusedByHostError
from core.metrics import columns
from core.processes import identity
from core.protocol.messages import Appended, RunStatus
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from tests.helpers.metrics_writer import lines_of
from tests.helpers.synthetic_run import Shape, make_run, write_columns, write_lines

pytestmark = pytest.mark.windows
LIVE = {"state": "training", "host": identity.own()}
ROOT = Path(__file__).resolve().parents[4]


class Shown:
    """What the GUI thread would hold: items applied in their order."""

    def __init__(self, store: RunStore, connect: Any = None) -> None:
        self.items: list[Any] = []
        self.series = RunSeries()
        self._queue: queue.Queue[Any] = queue.Queue(8)
        self.worker = Worker("follower", lambda stopping: RunFollower(store, self._send, connect, stopping).run())
        self.worker.start()

    def _send(self, item: Any) -> bool:
        try:
            self._queue.put(item, timeout=0.05)
        except queue.Full:
            return False
        return True

    def until(self, reached: Callable[[], bool], timeout_s: float = 20.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            assert time.monotonic() < deadline, f"not reached; last items: {self.items[-5:]}"
            try:
                self._apply(self._queue.get(timeout=0.05))
            except queue.Empty:
                continue

    def until_item(self, kind: type) -> None:
        self.until(lambda: any(isinstance(item, kind) for item in self.items))

    def close(self) -> None:
        self.worker.stopping.set()
        assert self.worker.stop()

    def _apply(self, item: Any) -> None:
        self.items.append(item)
        if isinstance(item, Opened):
            self.series = item.series
        elif isinstance(item, MetricsBatch):
            self.series.apply(item)
        elif isinstance(item, OldEvents):
            self.series.add_events_before(item.events)
        elif isinstance(item, Kept):
            self.series.adopt(item.folder, item.index)


@pytest.fixture
def show() -> Iterator[Callable[..., Shown]]:
    shown: list[Shown] = []

    def start(store: RunStore, connect: Any = None) -> Shown:
        shown.append(Shown(store, connect))
        return shown[-1]

    yield start
    for one in shown:
        one.close()


def expected(steps: int, seed: int) -> dict[str, np.ndarray]:
    """The effective curves, from the lines themselves."""
    curves: dict[str, dict[int, float]] = {}
    for line in lines_of(steps, seed):
        if line["event"] == "launch" and line["resumed_from"]:
            for rank, step in line["resumed_from"].items():
                curves[f"rank{rank}"] = {s: loss for s, loss in curves[f"rank{rank}"].items() if s <= step}
        if line["event"] == "step":
            curves.setdefault(f"rank{line['rank']}", {})[line["step"]] = line["loss"]
    return {name: np.array([list(curve), list(curve.values())]) for name, curve in curves.items()}


def assert_whole(series: RunSeries, steps: int, seed: int) -> None:
    for name, curve in expected(steps, seed).items():
        found = series.groups[name]
        assert found.rows == curve.shape[1]
        np.testing.assert_array_equal(found.columns["step"].read(0, found.rows), curve[0])
        np.testing.assert_array_equal(found.columns["loss"].read(0, found.rows), curve[1])
    written = [line for line in lines_of(steps, seed) if line["event"] != "step"]
    keys = ("event", "attempt", "step")
    assert [[e.get(k) for k in keys] for e in series.events] == [[line.get(k) for k in keys] for line in written]
    assert series.evals.rows == steps // 50


@pytest.mark.parametrize("columns_kept", [False, True], ids=["file alone", "with columns"])
def test_no_line_is_missing_or_comes_twice(tmp_path: Path, show: Callable[..., Shown], columns_kept: bool) -> None:
    steps, seed = 4000, 5
    store = make_run(tmp_path / "run", **LIVE)
    command = [sys.executable, "-m", "tests.helpers.metrics_writer", str(store.dir), str(steps), str(seed)]
    chance = random.Random(seed)
    with subprocess.Popen([*command, *(["keep-columns"] * columns_kept)], cwd=ROOT) as writer:
        first = show(store)  # attached from the start to the end
        while writer.poll() is None:
            passing = show(store)
            passing.until_item(CaughtUp)
            passing.close()
            seen = passing.series.rank(0)
            if not seen.rows:
                continue  # it came before the first line
            np.testing.assert_array_equal(seen.columns["step"].read(0, seen.rows), np.arange(1, seen.rows + 1))
            time.sleep(chance.random() * 0.05)
        assert writer.returncode == 0
    late = show(store)
    for shown in (first, late):
        shown.until(lambda shown=shown: bool(shown.series.events_of("finished")))
        assert_whole(shown.series, steps, seed)


def test_columns_and_file_give_the_same_run(tmp_path: Path, show: Callable[..., Shown]) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=3000))
    by_file = show(store)
    by_file.until_item(CaughtUp)
    columns.rebuild(store.dir)
    by_columns = show(store)
    by_columns.until_item(CaughtUp)
    assert by_columns.series.rank(0).columns["loss"]._tail == 0
    assert by_file.series.groups.keys() == by_columns.series.groups.keys()
    for name, series in by_file.series.groups.items():
        other = by_columns.series.groups[name]
        assert series.columns.keys() == other.columns.keys()
        for column, values in series.columns.items():
            np.testing.assert_array_equal(values.read(0, series.rows), other.columns[column].read(0, other.rows))
            np.testing.assert_array_equal(values.pyramid.level(2), other.columns[column].pyramid.level(2))
    assert by_file.series.events == by_columns.series.events


def test_stale_columns_of_a_long_run_are_made_again(
    tmp_path: Path, show: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_follower, "REBUILD_BYTES", 1000)
    store = write_lines(tmp_path / "run", Shape(steps=500), with_columns=True)
    with store.metrics.open("r+b") as file:
        file.write(b"#")  # another file: the columns' hash does not hold any more
        file.truncate(store.metrics.stat().st_size - 10)
    shown = show(store)
    shown.until_item(CaughtUp)
    words = [item.text for item in shown.items if isinstance(item, Progress)]
    assert words[0]
    assert words[-1] == ""
    assert columns.is_current(store.dir)
    assert shown.series.rank(0).rows == 500
    assert shown.series.rank(0).columns["loss"]._tail == 0


def test_columns_that_cannot_be_made_again_cost_time_only(
    tmp_path: Path, show: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_follower, "REBUILD_BYTES", 1000)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    store = write_lines(tmp_path / "run", Shape(steps=500))
    shown = show(store)
    shown.until_item(CaughtUp)
    assert shown.series.rank(0).rows == 500


def test_a_live_runs_columns_are_left_to_its_host(
    tmp_path: Path, show: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_follower, "REBUILD_BYTES", 1000)
    store = write_lines(tmp_path / "run", Shape(steps=500), **LIVE)
    shown = show(store)
    shown.until_item(CaughtUp)
    assert shown.series.rank(1).rows == 500
    assert not store.columns.exists()


def test_the_state_is_told_when_it_changes(tmp_path: Path, show: Callable[..., Shown]) -> None:
    store = make_run(tmp_path / "run", **LIVE)
    shown = show(store)
    shown.until_item(CaughtUp)
    store.write_state(store.stored_state().replace(step=7))
    shown.until(lambda: shown.items[-1] == store.stored_state())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    gone = identity.ProcessId(dead.pid, time.time() - 100)
    dead.wait()
    store.write_state(store.stored_state().replace(host=gone))
    shown.until(lambda: isinstance(shown.items[-1], RunState) and shown.items[-1].state == "interrupted")


def test_a_run_that_cannot_be_read_is_told_once(tmp_path: Path, show: Callable[..., Shown]) -> None:
    store = make_run(tmp_path / "run")
    store.state_json.write_text("{", encoding="utf-8")
    shown = show(store)
    shown.until_item(Problem)
    store.state_json.write_text(" {", encoding="utf-8")
    shown.until_item(CaughtUp)
    assert sum(isinstance(item, Problem) for item in shown.items) == 1


def test_another_file_in_its_place_is_read_from_its_start(tmp_path: Path, show: Callable[..., Shown]) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=300), **LIVE)
    shown = show(store)
    shown.until_item(CaughtUp)
    other = write_lines(tmp_path / "other", Shape(steps=20))
    shutil.copy(other.metrics, tmp_path / "copy")
    (tmp_path / "copy").replace(store.metrics)
    shown.until(lambda: shown.series.rank(0).rows == 20)


def test_memory_is_let_go_once_the_columns_hold_it(
    tmp_path: Path, show: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_follower, "ADOPT_EVERY_BYTES", 1000)
    steps, seed = 2000, 2
    store = make_run(tmp_path / "run", **LIVE)
    shown = show(store)
    shown.until_item(CaughtUp)
    words = [str(store.dir), str(steps), str(seed), "keep-columns"]
    subprocess.run([sys.executable, "-m", "tests.helpers.metrics_writer", *words], cwd=ROOT, check=True, timeout=60)
    shown.until(lambda: bool(shown.series.events_of("finished")))
    with store.metrics.open("ab") as file:
        file.write(b'{"ts": 2e9, "event": "alert", "rank": -1, "attempt": 2}\n' * 50)
    shown.until(lambda: shown.series.rank(0).columns["loss"]._tail == 0)
    shown.series.events = [event for event in shown.series.events if event["event"] != "alert"]
    assert_whole(shown.series, steps, seed)


class FakeConnection:
    """A host that says what the test puts in, and then nothing, or hangs up."""

    def __init__(self) -> None:
        self.said: queue.Queue[Any] = queue.Queue()
        self.is_closed = threading.Event()

    def messages(self, timeout_s: float) -> list[Any]:
        try:
            message = self.said.get(timeout=timeout_s)
        except queue.Empty:
            return []
        if message is None:
            raise ConnectionRefusedByHostError("It hung up.", "Resume the run.")
        return [message]

    def close(self) -> None:
        self.is_closed.set()


def test_a_host_that_talks_is_listened_to_and_one_that_hangs_up_is_not_missed(
    tmp_path: Path, show: Callable[..., Shown]
) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=10, ranks=1), **LIVE)
    connections = [FakeConnection()]
    asked: list[float] = []

    def connect(_store: RunStore, timeout_s: float) -> FakeConnection:
        asked.append(timeout_s)
        if connections:
            return connections.pop()
        raise ConnectionRefusedByHostError("Nothing listens.", "Resume the run.")

    host = connections[0]
    shown = show(store, connect)
    shown.until(lambda: bool(asked))
    line = b'{"ts": 2e9, "event": "step", "rank": 0, "attempt": 1, "step": %d}\n'
    with store.metrics.open("ab", buffering=0) as file:
        file.write(line % 11)
        host.said.put(Appended(store.metrics.stat().st_size))
        shown.until(lambda: shown.series.rank(0).rows == 11)
        host.said.put(RunStatus(store.stored_state().replace(phase="told").as_dict()))
        shown.until(lambda: isinstance(shown.items[-1], RunState) and shown.items[-1].phase == "told")
        host.said.put(None)
        assert host.is_closed.wait(10)
        file.write(line % 12)
    shown.until(lambda: shown.series.rank(0).rows == 12)
    shown.until(lambda: len(asked) > 1)


def test_ending_is_quick_in_every_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_follower, "SLICE_BYTES", 4096)
    store = write_lines(tmp_path / "run", Shape(steps=2000))
    for wait_s in (0.0, 0.02, 0.1):
        shown = Shown(store)  # nobody takes anything out of its queue: it has to give up waiting
        time.sleep(wait_s)
        shown.close()
        assert not shown.worker.is_alive()


def test_a_run_of_columns_only_is_open_without_reading_its_lines(tmp_path: Path, show: Callable[..., Shown]) -> None:
    store = write_columns(tmp_path / "run", Shape(steps=50_000))
    shown = show(store)
    shown.until_item(CaughtUp)
    assert shown.series.rank(0).rows == 50_000
    assert not any(isinstance(item, MetricsBatch) for item in shown.items)
    loss = shown.series.rank(0).columns["loss"]
    assert loss.pyramid.level(3)[2, 1] == pytest.approx(loss.read(2048, 4096).mean())
