from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from core.config import RunConfig
from core.host.metrics import status
from core.host.metrics.status import StatusPublisher
from core.protocol.messages import Appended, Message, RunStatus
from core.protocol.server import Connection
from core.run_folder.state import RunState
from core.run_folder.store import RunStore


class Client:
    """Notes what it is told, and `state.json` at that moment."""

    unread_bytes = 0

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self.states: list[tuple[dict[str, Any], RunState]] = []
        self.sizes: list[int] = []

    def send(self, message: Message) -> None:
        if isinstance(message, RunStatus):
            self.states.append((dict(message.state), self._store.stored_state()))
        elif isinstance(message, Appended):
            self.sizes.append(message.size_bytes)


class Place:
    """A publisher with one client."""

    def __init__(self, folder: Path) -> None:
        self.store = RunStore.create(folder, RunConfig(dataset_file="text.txt"))
        self.client = Client(self.store)
        self.connection = cast(Connection, cast(Any, self.client))
        self.disk = ThreadPoolExecutor(1)
        self.publisher = StatusPublisher(self.store, self.store.stored_state(), self.disk, lambda: [self.connection])

    async def until(self, reached: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + 10.0
        while not reached():
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.002)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.disk.shutdown()


@pytest.mark.parametrize("newcomer", [False, True], ids=["connected", "connects meanwhile"])
def test_who_hears_that_a_run_has_stopped_reads_it_on_disk_too(place: Place, newcomer: bool) -> None:
    before = place.store.stored_state().state
    free = threading.Event()

    async def stop() -> None:
        place.disk.submit(free.wait, 10.0)  # the disk has something else to do first
        place.publisher.change(state="stopped")
        telling = asyncio.ensure_future(place.publisher.flush())
        await asyncio.sleep(0.05)
        if newcomer:
            place.publisher.greet(place.connection)
        free.set()
        await telling

    asyncio.run(stop())
    heard = [(told["state"], stored.state) for told, stored in place.client.states]
    assert heard == [(before, before)] * newcomer + [("stopped", "stopped")]


def test_progress_is_told_more_often_than_it_is_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "QUIET_S", 0.02)
    monkeypatch.setattr(status, "QUIET_DISK_S", 0.6)
    heard = place.client.states

    async def train() -> None:
        running = asyncio.ensure_future(place.publisher.run())
        for step in range(1, 21):
            place.publisher.progress(step=step)
            await asyncio.sleep(0.03)
        # Nothing new happens, and the last of it is written all the same; it is written first, then sent.
        await place.until(lambda: place.store.stored_state().step == 20 and heard[-1][0]["step"] == 20)
        running.cancel()

    asyncio.run(train())
    assert len({told["step"] for told, _ in heard}) > len({stored.step for _, stored in heard})


def test_lines_that_come_one_after_the_other_are_told_together(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "TICK_S", 0.001)
    monkeypatch.setattr(status, "TELL_S", 0.2)
    asked = 0

    async def write() -> None:
        nonlocal asked
        running = asyncio.ensure_future(place.publisher.run())
        for size in range(1, 31):
            if place.publisher.appended(size):
                asked += 1
                place.publisher.tell()
            await asyncio.sleep(0.003)
        # The newest size is told, also when nothing comes after it.
        await place.until(lambda: place.client.sizes[-1:] == [30])
        running.cancel()

    asyncio.run(write())
    told = place.client.sizes
    assert told == sorted(told) and len(told) == asked < 30


def test_progress_does_not_tell_new_lines_before_it_is_time_and_the_end_does(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "TICK_S", 0.001)
    monkeypatch.setattr(status, "QUIET_S", 0.001)
    monkeypatch.setattr(status, "TELL_S", 3600.0)
    client = place.client

    def steps() -> list[int]:
        return [told["step"] for told, _ in client.states]

    async def write() -> list[int]:
        running = asyncio.ensure_future(place.publisher.run())
        for size in (0, 1, 2):  # at first the state alone, which is told at once
            if size and place.publisher.appended(size):
                place.publisher.tell()
            place.publisher.progress(step=size)
            await place.until(lambda size=size: steps()[-1:] == [size] and (size != 1 or bool(client.sizes)))
        before = list(client.sizes)
        running.cancel()
        place.publisher.change(state="finished")
        await place.publisher.flush()
        return before

    assert asyncio.run(write()) == [1]
    assert steps()[-1] == 2 and client.sizes == [1, 2]
