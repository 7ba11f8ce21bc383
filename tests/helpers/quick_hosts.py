"""Hosts that the window and the command line start quickly: for tests of what a run does, not of how it is started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import pytest

from core import client
from core.run_folder.store import RunStore
from tests.helpers import forked_host

ROOT: Final = Path(__file__).resolve().parents[2]
END_LIMIT_S: Final = 10.0


@pytest.fixture
def quick_hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Until the test ends, what `core.client` starts in this process is forked, where that can be (`forked_host`)."""
    if not forked_host.can_fork():
        yield
        return
    started: list[BaseProcess] = []

    def start(store: RunStore) -> None:
        started.append(forked_host.start(store.dir, {**os.environ, "PYTHONPATH": str(ROOT)}))

    monkeypatch.setattr(client, "_spawn_host", start)
    yield
    for process in started:
        process.join(END_LIMIT_S)
    left = [process.pid for process in started if process.is_alive()]
    for process in started:
        process.kill()
        process.join()
        process.close()
    assert not left, f"hosts outlive their test: {left}"
