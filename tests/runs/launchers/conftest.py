"""Fixtures of tests under launchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers.launched import Job


@pytest.fixture(autouse=True)
def _own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes meet is the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Starts a launcher in the test's folder; ends it, and what it started, with the test."""
    jobs: list[Job] = []

    def begin(command: Sequence[str], env: dict[str, str] | None = None) -> Job:
        jobs.append(Job(command, tmp_path, env))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.close()
