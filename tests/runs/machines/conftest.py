"""Fixtures of tests with another machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.cli import main
from tests.helpers.ssh_server import SshServer
from tests.helpers.window_fixture import open_sheet, open_window

__all__ = ["command", "machine", "open_sheet", "open_window", "server"]
Command = Callable[..., str]


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's data folder, where the machines are kept."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "Eigenes"))
    return tmp_path / "Eigenes" / "rankdeck"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A machine that can be reached."""
    made = SshServer(tmp_path / "drüben")
    yield made
    made.close()


@pytest.fixture
def command(runs_dir: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs `rankdeck …`, expects an exit code, and returns what it printed."""
    assert runs_dir.is_dir()

    def run(*words: str, code: int | None = 0) -> str:
        capfd.readouterr()
        found = main([str(word) for word in words])
        printed = "\n".join(capfd.readouterr())
        assert found == code or (code is None and found), printed
        return printed

    return run


@pytest.fixture
def machine(server: SshServer, command: Command) -> SshServer:
    """A machine that is kept under the name `box`."""
    command("machines", "add", "box", *server.add)
    return server
