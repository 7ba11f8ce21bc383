"""Rank starter: starts and ends the rank of a process that a launcher has started, as the run's host asks.

The rank is this process's child, in a `ProcessTree`, rather than this process itself: so its exit code is known, a
signal from the launcher becomes a stop in order instead of its death, the launcher shows how the run goes, and Windows,
which has no exec, needs no code of its own (docs/decisions/0045).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.config.distributed import DistributedConfig
from core.config.launcher_variables import TITLES
from core.errors import RankdeckError
from core.files.links import append_unlinked
from core.launch.meeting import POLL_S, Meeting, error_in
from core.launch.plan import rank_environment
from core.processes import Child, ProcessTree
from core.processes.identity import ProcessId, is_alive

LAUNCHER_GONE: Final = 1
HOST_GONE: Final = 1
# While the rank trains, each look takes a core from it.
_CALM_POLL_S: Final = 0.25
_HOST_LIMIT_S: Final = 60.0  # for the run's host to start
# A rank whose host is gone ends by itself within seconds.
_ORPHAN_LIMIT_S: Final = 5.0
# Of a host on another machine nothing is seen but its requests: so long after its rank has ended, it is gone.
_REMOTE_LIMIT_S: Final = 120.0


class RankStarter:
    """Serves the run's host until the run is over, the host is gone, or the launcher is.

    Args:
        meeting: Where the host asks.
        place: This process's.
        parent: The launcher's process, which started this one.

    Attributes:
        code: This process's exit code, once the thread has ended.
        error: Why the run has failed.
    """

    def __init__(self, meeting: Meeting, place: DistributedConfig, parent: ProcessId) -> None:
        self._thread = threading.Thread(target=self._run, name="rank-starter", daemon=True)
        self.code = HOST_GONE
        self.error: RankdeckError | None = None
        self._meeting = meeting
        self._place = place
        self._parent = parent
        self._host: ProcessId | None = None
        self._host_by = time.monotonic() + _HOST_LIMIT_S
        self._number = 0
        self._tree: ProcessTree | None = None
        self._child: Child | None = None
        self._idle_since = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def ended(self, limit_s: float) -> bool:
        """Wait for its end, up to `limit_s`; return whether it has ended."""
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        """The thread's work; whatever happens, no rank is left."""
        try:
            while self._go_on():
                time.sleep(_CALM_POLL_S if self._child is not None else POLL_S)
        finally:
            self._close()

    def _go_on(self) -> bool:
        if not self._parent_lives():
            self._log(
                f"{TITLES[self._place.launch_method]}, which started this rank, has ended: the rank is ended too."
            )
            self.code = LAUNCHER_GONE
            return False
        over = self._meeting.read("over.json")
        if over is not None:
            self._take(over)
            return False
        if not self._host_lives():
            return False
        self._report_end()
        asked = self._meeting.read(f"ask-{self._place.rank}.json")
        if asked is not None and asked.get("number") != self._number:
            self._number = int(asked["number"])
            if "start" in asked:
                self._start_rank(asked["start"])
            else:
                self._stop_rank(float(asked["stop"]))
        return True

    def _parent_lives(self) -> bool:
        if sys.platform == "win32":
            return is_alive(self._parent)
        return os.getppid() == self._parent.pid  # an orphan gets another parent

    def _host_lives(self) -> bool:
        if self._host is None:
            self._host = ProcessId.from_json(self._meeting.read("host.json"))
            return self._host is not None or time.monotonic() < self._host_by
        if self._meeting.is_remote:
            return self._child is not None or time.monotonic() - self._idle_since < _REMOTE_LIMIT_S
        if self._meeting.lives(self._host):
            return True
        # Its last words may be there already, and the rank's come.
        deadline = time.monotonic() + _ORPHAN_LIMIT_S
        while self._child is not None and self._child.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._take(self._meeting.read("over.json") or {})
        return False

    def _take(self, over: Mapping[str, Any]) -> None:
        self.code = int(over.get("code", HOST_GONE))
        self.error = error_in(over)

    def _start_rank(self, what: Mapping[str, Any]) -> None:
        self._close()
        env = rank_environment(os.environ, what["env"], what["default_env"], what["removed_env"])
        self._tree = ProcessTree(what["mark"])
        try:
            self._child = self._tree.spawn(what["argv"], env, Path(what["cwd"]), Path(what["log"]))
        except RankdeckError as error:
            self._answer(error=error.as_dict())
            return
        self._answer(pid=self._child.pid)

    def _stop_rank(self, limit_s: float) -> None:
        left = [] if self._tree is None else self._tree.stop(limit_s)
        self._close()
        self._answer(left=left)

    def _report_end(self) -> None:
        if self._child is None or (code := self._child.poll()) is None:
            return
        pid = self._child.pid
        self._close()  # and with it what the rank has started
        self._answer(pid=pid, code=code)

    def _close(self) -> None:
        if self._tree is not None:
            self._tree.close()
            self._idle_since = time.monotonic()
        self._tree = self._child = None

    def _answer(self, **what: Any) -> None:
        self._meeting.write(f"rank-{self._place.rank}.json", {"number": self._number, **what})

    def _log(self, text: str) -> None:
        if self._child is not None:
            with append_unlinked(self._child.log) as file:
                file.write(f"rankdeck: {text}\n".encode())
