"""Real run hosts with fake ranks: made, scripted, watched and ended by one object a run."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from core.client import resume_run, start_run, stop_run, wait_until
from core.config import RunConfig
from core.host.states import HostState
from core.metrics.metrics_file import MetricsTail
from core.processes import folder_mark
from core.protocol.rank_context import ENV_RUN_MARK
from core.resume.planner import plan_resume
from core.run_folder.early_host import EarlyHost
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from tests.helpers import forked_host
from tests.helpers.fake_behaviour import BEHAVIOUR_FILE, as_table
from tests.helpers.forked_host import FAKE_RECIPE

# A bound for a hang; ranks that are not forked take ten seconds to start on a busy machine.
LIMIT_S: Final = 120.0 if forked_host.can_fork() else 180.0
# In which a rank that does not hang has started.
SHORT_START_S: Final = 2.0 if forked_host.can_fork() else 15.0


class FakeRun:
    """One run of the fake recipe. Script it, `start` it, then look.

    Args:
        folder: A folder of the test's own.
        runs_dir: Where its folder is made; None: below `folder`.
        config: `RunConfig` fields that differ from a small run's.
    """

    def __init__(self, folder: Path, runs_dir: Path | None = None, **config: Any) -> None:
        data = folder / "text.txt"
        data.write_text("All the samples there are.\n" * 100, encoding="utf-8", newline="\n")
        self._runs_dir = folder / "runs" if runs_dir is None else runs_dir
        self._config = RunConfig(
            **{
                "recipe": FAKE_RECIPE,
                "dataset_file": str(data),
                "devices": ("cpu:2",),
                "mode": "ddp",
                "batch_size": 2,
                "samples_per_block": 1_000,
                "dataset_chunk_size": 100,
                "start_timeout_s": 30.0,
                "stop_timeout_s": 20.0,
                **config,
            }
        )
        self._behaviours: dict[str, dict[str, Any]] = {"*": {}}
        self._made = time.time() - 1.0
        self.run_dir = self._runs_dir / "the run"
        self.store = RunStore(self.run_dir)

    @property
    def config(self) -> RunConfig:
        return self._config

    # scripting

    def behave(self, rank: int | str = "*", **fields: Any) -> FakeRun:
        """Scripts one rank, or every rank; see `tests.helpers.fake_behaviour.Behaviour`."""
        self._behaviours.setdefault(str(rank), {}).update(fields)
        if self.run_dir.exists():
            self._write_behaviours()
        return self

    def fail_at(self, rank: int, step: int | str, how: str = "kill", **fields: Any) -> FakeRun:
        return self.behave(rank, fail_at=step, fail_how=how, **fields)

    def hang_at(self, rank: int, step: int | str) -> FakeRun:
        return self.behave(rank, hang_at=step)

    # doing

    def start(self, host: EarlyHost | None = None) -> FakeRun:
        """Starts a detached host through `core.client`, or gives the run to one that waits."""
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._write_behaviours()
        self.store = start_run(self._config, self._runs_dir, self.run_dir, host=host)
        return self

    def resume(self, **changes: Any) -> FakeRun:
        resume_run(plan_resume(str(self.run_dir), self._runs_dir, changes, accept_code=True))
        return self

    def stop(self, now: bool = False) -> FakeRun:
        """Asks for a stop; does not wait for the end."""
        stop_run(self.store, now)
        return self

    def kill_host(self) -> FakeRun:
        """Kills the host without warning."""
        host = self.host
        host.kill()
        psutil.wait_procs([host], timeout=10)
        return self

    # looking

    def wait(self, reached: Callable[[RunState], bool]) -> RunState:
        """The state as soon as it is so; the test fails when it never is."""
        state = wait_until(self.store, reached, LIMIT_S)
        assert reached(state), f"it came to {state}\n{self.log()}"
        return state

    def wait_for_step(self, step: int, rank: int = 0) -> FakeRun:
        """Until the metrics hold a step of a rank, or one after it; `state.json` may say so up to a second later."""
        self._wait_for_lines(lambda: any(found >= step for found in self.steps(rank)), f"step {step}")
        return self

    def wait_for_event(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        self._wait_for_lines(lambda: len(self.events(event)) >= count, event)
        return self.events(event)

    def _wait_for_lines(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert time.monotonic() < deadline, f"no {what} came\n{self.log()}"
            time.sleep(0.02)

    def end(self) -> RunState:
        state = self.wait(lambda state: not state.is_live)
        deadline = time.monotonic() + LIMIT_S
        while self.store.is_locked() and time.monotonic() < deadline:
            time.sleep(0.02)
        return state

    @property
    def host(self) -> psutil.Process:
        state = self.wait(lambda state: state.host is not None)
        assert state.host is not None
        return psutil.Process(state.host.pid)

    def lines(self) -> list[dict[str, Any]]:
        tail, found = MetricsTail(self.store.metrics), list[bytes]()
        while lines := tail.read():
            found += lines
        return [json.loads(line) for line in found]

    def events(self, event: str) -> list[dict[str, Any]]:
        """The metrics lines of one kind."""
        return [line for line in self.lines() if line["event"] == event]

    def steps(self, rank: int = 0, attempt: int | None = None) -> list[int]:
        return [
            line["step"]
            for line in self.events("step")
            if line["rank"] == rank and (attempt is None or line["attempt"] == attempt)
        ]

    def ledger(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.store.ledger.read_text(encoding="utf-8"))
        return found

    def completed(self) -> set[tuple[int, ...]]:
        """The ledger's completed chunks; independent ranks complete theirs in an order that time decides."""
        keys = ("epoch", "block_id", "chunk_id", "gpu_id", "optimizer_step", "steps")
        return {tuple(chunk[key] for key in keys) for chunk in self.ledger()["completed_chunks"]}

    def checkpoints(self) -> list[int]:
        return sorted(int(path.parent.name) for path in self.store.checkpoints.glob("*/manifest.json"))

    def weights(self) -> str:
        return self.store.model.read_text(encoding="utf-8")

    def log(self) -> str:
        texts = [f"--- {p.name}\n{p.read_text(encoding='utf-8', errors='replace')}" for p in self.store.logs.glob("*")]
        return "\n".join(texts)

    def ranks(self) -> list[psutil.Process]:
        """Living ranks, and what they started: processes that have this run's mark in their environment.

        Forked ranks do not show theirs, so those that the host's log names are asked for too.
        """
        log = self.store.logs / "host.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        named = {int(pid) for pid in re.findall(r"rank \d+ is process (\d+)", text)}
        found, mark = [], folder_mark(self.run_dir)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                ours = process.pid in named and process.create_time() >= self._made
                ours = ours or process.environ().get(ENV_RUN_MARK, "").startswith(mark)
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def close(self) -> None:
        with contextlib.suppress(Exception):
            state = self.store.stored_state()
            if state.is_live and state.host is not None and state.seen().is_live:
                psutil.Process(state.host.pid).kill()
        for process in self.ranks():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _write_behaviours(self) -> None:
        (self.run_dir / BEHAVIOUR_FILE).write_text(as_table(self._behaviours), encoding="utf-8", newline="\n")


MakeRun = Callable[..., FakeRun]
FAILED, STOPPED, FINISHED = str(HostState.FAILED), str(HostState.STOPPED), str(HostState.FINISHED)


@contextlib.contextmanager
def quick_starts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forks the hosts of a test and their ranks, unless it is marked as `spawned`: then they start as a person's do."""
    if request.node.get_closest_marker("spawned"):
        yield
    else:
        with forked_host.forked_hosts(monkeypatch):
            yield


@pytest.fixture
def make_run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeRun]:
    made: list[FakeRun] = []

    def make(**config: Any) -> FakeRun:
        folder = tmp_path / f"Läufe mit Raum {len(made)}"
        folder.mkdir()
        made.append(FakeRun(folder, **config))
        return made[-1]

    with quick_starts(request, monkeypatch):
        yield make
        for run in made:
            run.close()


@pytest.fixture
def quick_hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forks what `core.client` starts in this process: for tests of what a run does, not of how it is started."""
    with forked_host.forked_hosts(monkeypatch):
        yield
