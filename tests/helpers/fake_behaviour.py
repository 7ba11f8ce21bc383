"""Behaviour of a fake rank: a table by rank in `fake.json` in its run's folder (``"*"`` is every rank)."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.protocol.messages import RankFailed
from core.protocol.rank_context import RankContext

BEHAVIOUR_FILE: Final = "fake.json"
_LONG_S: Final = 600
_DAEMON: Final = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"


class FakeFailure(Exception):
    """A failure that a fake rank reports to its host."""

    def __init__(self, title: str, cause: str, *, usage: bool = False) -> None:
        super().__init__(cause)
        self.report = RankFailed(title, cause, "Try another one.", usage, "Traceback of a fake rank")


@dataclass(frozen=True)
class Behaviour:
    """What a fake rank does.

    Attributes:
        steps: Steps of the whole run.
        step_s: How long one takes.
        samples: Training samples in the dataset.
        batch: Samples of one step.
        fail_at: Where it fails: "start" (before it connects), "data", "ready", "staging", "merge", "finish", or a step.
        fail_how: "kill" (SIGKILL), "exit:N", "raise" (reports `RankFailed`), "usage" (invalid input), "quiet" (exit
            code 0 without a report).
        fail_attempts: Only in these attempts; empty means in every one.
        hang_at: Where it stops answering: as `fail_at`, or "stop" (ignores a stop).
        hang_locked: It hangs with the interpreter lock, so that no other thread of it answers either (not on Windows).
        commit_every: Steps between commits; 0 commits at the end only.
        commits_all: None is left out because the one before is still being written.
        commit_s: How long a part takes to write.
        failing_commits: How many commits fail first.
        eval_every: Steps between `eval` lines; 0 has none.
        val_loss: The validation loss that it reports.
        val_losses: That of each evaluation, in their order; the last one stays.
        ballast: Bytes of a file that it adds to each of its parts.
        wait_s: What it reports of each step that it waited for other ranks; None reports nothing of it.
        flood: Further metrics lines with each step.
        raw: Lines sent as they are, once, after the first step.
        ignore_eof: Stays alive when the host is gone.
        ignore_sigterm: Has to be killed.
        grandchild: Starts a process of its own that sleeps.
        daemon: Python code that it starts in a session of its own, by a process that ends at once.
    """

    steps: int = 20
    step_s: float = 0.002
    samples: int = 100_000
    batch: int = 4
    fail_at: str | int | None = None
    fail_how: str = "kill"
    fail_attempts: list[int] = field(default_factory=list)
    hang_at: str | int | None = None
    hang_locked: bool = False
    commit_every: int = 0
    commits_all: bool = False
    commit_s: float = 0.0
    failing_commits: int = 0
    eval_every: int = 0
    val_loss: float = 2.0
    val_losses: list[float] = field(default_factory=list)
    ballast: int = 0
    wait_s: float | None = None
    flood: int = 0
    raw: list[str] = field(default_factory=list)
    ignore_eof: bool = False
    ignore_sigterm: bool = False
    grandchild: bool = False
    daemon: str = ""

    def prepare_process(self) -> None:
        if self.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.grandchild:
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if self.daemon:
            subprocess.run([sys.executable, "-c", _DAEMON, self.daemon], check=True)

    def reach(self, where: str | int, context: RankContext) -> None:
        """Fails or hangs if this is the place.

        Raises:
            FakeFailure: It fails by a report.
        """
        if self.fail_attempts and context.attempt not in self.fail_attempts:
            return
        if self.hang_at == where:
            print(f"fake rank {context.rank} hangs at {where}", flush=True)
            if self.hang_locked:
                ctypes.PyDLL(None).sleep(_LONG_S)
            threading.Event().wait()
        if self.fail_at == where:
            print(f"fake rank {context.rank} fails at {where}: {self.fail_how}", flush=True)
            self._fail(where)

    def _fail(self, where: str | int) -> None:
        how = self.fail_how
        if how == "raise":
            raise FakeFailure("Out of memory", f"A fake GPU is out of memory at {where}.")
        if how == "usage":
            raise FakeFailure("The dataset is too small", "It holds not one training sample.", usage=True)
        if how == "kill" and sys.platform != "win32":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(int(how.partition(":")[2] or (0 if how == "quiet" else 9)))


def read_behaviour(run_dir: Path, rank: int) -> Behaviour:
    path = run_dir / BEHAVIOUR_FILE
    table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Behaviour(**{**table.get("*", {}), **table.get(str(rank), {})})


def as_table(ranks: dict[str, dict[str, Any]]) -> str:
    for fields in ranks.values():
        dataclasses.replace(Behaviour(), **fields)
    return json.dumps(ranks)
