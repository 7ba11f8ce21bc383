from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from core.config import RunConfig
from core.host.metrics import status
from core.host.metrics.status import StatusPublisher
from core.protocol.messages import Appended, Message, RunStatus
from core.protocol.server import Connection
from core.run_folder.store import RunStore


class Client:
    """Notes what it is told, and what `state.json` says at that moment."""

    unread_bytes = 0

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self.heard: list[tuple[str, str]] = []

    def send(self, message: Message) -> None:
        if isinstance(message, RunStatus):
            self.heard.append((str(message.state["state"]), self._store.stored_state().state))


@pytest.mark.parametrize("newcomer", [False, True], ids=["connected", "connects meanwhile"])
def test_who_hears_that_a_run_has_stopped_reads_it_on_disk_too(tmp_path: Path, newcomer: bool) -> None:
    store = RunStore.create(tmp_path, RunConfig(dataset_file="text.txt"))
    before = store.stored_state().state
    client = Client(store)
    connection = cast(Connection, cast(Any, client))
    free = threading.Event()

    async def stop() -> None:
        with ThreadPoolExecutor(1) as disk:
            disk.submit(free.wait, 10.0)  # the disk has something else to do first
            status = StatusPublisher(store, store.stored_state(), disk, lambda: [connection])
            status.change(state="stopped")
            telling = asyncio.ensure_future(status.flush())
            await asyncio.sleep(0.05)
            if newcomer:
                status.greet(connection)
            free.set()
            await telling

    asyncio.run(stop())
    assert client.heard == [(before, before)] * newcomer + [("stopped", "stopped")]


def test_progress_is_told_more_often_than_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "QUIET_S", 0.02)
    monkeypatch.setattr(status, "QUIET_DISK_S", 0.6)
    store = RunStore.create(tmp_path, RunConfig(dataset_file="text.txt"))
    heard: list[tuple[int, int]] = []

    class Watching:
        unread_bytes = 0

        def send(self, message: Message) -> None:
            assert isinstance(message, RunStatus)
            heard.append((int(message.state["step"]), store.stored_state().step))

    connection = cast(Connection, cast(Any, Watching()))

    async def train() -> None:
        with ThreadPoolExecutor(1) as disk:
            status = StatusPublisher(store, store.stored_state(), disk, lambda: [connection])
            running = asyncio.ensure_future(status.run())
            for step in range(1, 21):
                status.progress(step=step)
                await asyncio.sleep(0.03)
            deadline = asyncio.get_running_loop().time() + 10.0
            while asyncio.get_running_loop().time() < deadline:
                if store.stored_state().step == 20 and heard[-1][0] == 20:  # it is written first, then sent
                    break
                await asyncio.sleep(0.02)  # nothing new happens, and the last of it is written all the same
            running.cancel()

    asyncio.run(train())
    assert store.stored_state().step == 20
    assert heard[-1][0] == 20 and len({step for step, _ in heard}) > len({written for _, written in heard})


def test_lines_that_come_one_after_the_other_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "TICK_S", 0.001)
    monkeypatch.setattr(status, "TELL_S", 0.2)
    store = RunStore.create(tmp_path, RunConfig(dataset_file="text.txt"))
    told: list[int] = []

    class Listening:
        unread_bytes = 0

        def send(self, message: Message) -> None:
            if isinstance(message, Appended):
                told.append(message.size_bytes)

    connection = cast(Connection, cast(Any, Listening()))
    asked = 0

    async def write() -> None:
        nonlocal asked
        with ThreadPoolExecutor(1) as disk:
            publisher = StatusPublisher(store, store.stored_state(), disk, lambda: [connection])
            running = asyncio.ensure_future(publisher.run())
            for size in range(1, 31):
                if publisher.appended(size):
                    asked += 1
                    publisher.tell()
                await asyncio.sleep(0.003)
            deadline = asyncio.get_running_loop().time() + 10.0
            while told[-1:] != [30] and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(write())
    assert told[-1] == 30, "the newest size is told, also when nothing comes after it"
    assert told == sorted(told) and len(told) == asked < 30


def test_progress_does_not_tell_new_lines_before_it_is_time_and_the_end_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "TICK_S", 0.001)
    monkeypatch.setattr(status, "QUIET_S", 0.001)
    monkeypatch.setattr(status, "TELL_S", 3600.0)
    store = RunStore.create(tmp_path, RunConfig(dataset_file="text.txt"))
    heard: list[Message] = []

    class Listening:
        unread_bytes = 0

        def send(self, message: Message) -> None:
            heard.append(message)

    connection = cast(Connection, cast(Any, Listening()))

    def told() -> list[int]:
        return [message.size_bytes for message in heard if isinstance(message, Appended)]

    def steps() -> list[int]:
        return [int(message.state["step"]) for message in heard if isinstance(message, RunStatus)]

    async def write() -> list[int]:
        with ThreadPoolExecutor(1) as disk:
            publisher = StatusPublisher(store, store.stored_state(), disk, lambda: [connection])
            running = asyncio.ensure_future(publisher.run())
            for size in (0, 1, 2):  # at first the state alone, which is told at once
                if size and publisher.appended(size):
                    publisher.tell()
                publisher.progress(step=size)
                deadline = asyncio.get_running_loop().time() + 10.0
                while steps()[-1:] != [size] or (size == 1 and not told()):
                    assert asyncio.get_running_loop().time() < deadline
                    await asyncio.sleep(0.001)
            before = told()
            running.cancel()
            publisher.change(state="finished")
            await publisher.flush()
            return before

    assert asyncio.run(write()) == [1]
    assert steps()[-1] == 2 and told() == [1, 2]
