"""Hosts that the window and the command line start quickly: for tests of what a run does, not of how it is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import forked_host


@pytest.fixture
def quick_hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Until the test ends, what `core.client` starts in this process is forked (`forked_host`)."""
    with forked_host.forked_hosts(monkeypatch):
        yield
