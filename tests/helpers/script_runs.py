"""Runs of scripts through the recipe `script`, each with a real host, made in a test's own folder."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers.host_fixture import LIMIT_S, FakeRun, quick_starts

# For scripts without torch: no store is hosted that none of them would connect to; its process imports torch.
NO_STORE = {"TORCHELASTIC_USE_AGENT_STORE": "False"}


class ScriptRun(FakeRun):
    """One run of a script.

    Args:
        folder: A folder of the test's own; the script is written there.
        text: The script, or the path of one.
        arguments: Its command line.
        options: Further options of the recipe.
        config: `RunConfig` fields.
    """

    def __init__(
        self, folder: Path, text: str | Path, arguments: str = "", options: dict[str, Any] | None = None, **config: Any
    ) -> None:
        path = text if isinstance(text, Path) else folder / "train me.py"
        if isinstance(text, str):
            path.write_text(textwrap.dedent(text), encoding="utf-8", newline="\n")
        told = {"script": str(path), "arguments": arguments, "working_directory": str(folder), **(options or {})}
        super().__init__(folder, recipe="script", dataset_file="none://", options=told, **config)
        self.folder = folder

    def printed(self, rank: int = 0) -> str:
        return (self.store.logs / f"rank{rank}.log").read_text(encoding="utf-8", errors="replace")

    def wait_for_print(self, words: str, rank: int = 0) -> ScriptRun:
        deadline = time.monotonic() + LIMIT_S
        while not (self.store.logs / f"rank{rank}.log").exists() or words not in self.printed(rank):
            assert time.monotonic() < deadline, f"rank {rank} never printed {words!r}\n{self.log()}"
            time.sleep(0.02)
        return self

    def scripts(self) -> list[psutil.Process]:
        return [process for process in self.ranks() if "RANKDECK_SDK_PORT" in process.environ()]

    def assert_nothing_left(self) -> None:
        deadline = time.monotonic() + 10.0
        while (left := self.ranks()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, [process.cmdline() for process in left]


MakeScriptRun = Callable[..., ScriptRun]


@pytest.fixture
def script_run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeScriptRun]:
    made: list[ScriptRun] = []
    as_a_persons = request.node.get_closest_marker("spawned") is not None

    def make(text: str | Path, arguments: str = "", options: dict[str, Any] | None = None, **config: Any) -> ScriptRun:
        if isinstance(text, str) and "torch" not in text and not as_a_persons:
            config.setdefault("env", NO_STORE)
        folder = tmp_path / f"Läufe mit Raum {len(made)}"
        folder.mkdir()
        made.append(ScriptRun(folder, text, arguments, options, **config))
        return made[-1]

    with quick_starts(request, monkeypatch):
        yield make
        for run in made:
            run.close()
