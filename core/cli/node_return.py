"""Waiting for lost machines, where a run may not continue with those that are left (`--nodes N:N`).

No host lives meanwhile, so the command on the host's machine says in `state.json` for whom the run waits, and takes
that back before the next host starts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from core.errors import RankdeckError, StateFileError
from core.formatting import duration, listed
from core.processes.identity import own
from core.run_folder.state import WAITS_TITLE, RunState
from core.run_folder.store import RunStore

_TRIES_AFTER_S: Final = 0.5
"""The host that has lost a machine writes its own end first."""


class ReturnWait:
    """Looks again and again whether machines are missing that the run needs.

    Args:
        missing: Names those that were lost, while too few are left.
        nodes: ``--nodes`` of the command.
        limit_s: How long it waits.
        find_run: The run, once it is known.
    """

    def __init__(
        self,
        missing: Callable[[], Sequence[str]],
        nodes: str,
        limit_s: float,
        find_run: Callable[[], RunStore | None],
    ) -> None:
        self._missing = missing
        self._nodes = nodes
        self._limit_s = limit_s
        self._find_run = find_run
        self._since: float | None = None
        self._before: RunState | None = None

    def look(self) -> None:
        """Notes who is missing; raises `RankdeckError` when the time is over."""
        names = self._missing()
        if not names:
            self._since = None
            self._write_back(None)
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > self._limit_s:
            error = self._given_up(names)
            self._write_back(error)
            raise error
        if self._before is None and now - self._since > _TRIES_AFTER_S:
            self._say_waiting(names)

    def close(self, *, is_stopped: bool) -> None:
        """It is over; `is_stopped`: the user has ended it, and so the run."""
        if self._before is not None and is_stopped:
            self._before = self._before.replace(state="stopped", error=None)
        self._write_back(None)

    def _say_waiting(self, names: Sequence[str]) -> None:
        store = self._find_run()
        if store is None:
            return
        with contextlib.suppress(RankdeckError), store.lock():  # its host lives still, or the file cannot be read
            state = store.stored_state()
            if state.state != "failed":
                return
            who = listed(names)
            trouble = {
                "title": WAITS_TITLE,
                "cause": f"{who}, or the network to it, is gone, and with {self._nodes} machines asked for the run "
                f"does not continue without. It waits for {who} up to {duration(self._limit_s)}.",
                "next_step": f"Start the command of the run on {who} again. To train with what is left, stop the run "
                "and resume it on fewer machines.",
            }
            waiting = state.replace(state="starting", host=own(), error=None, exit_code=None, trouble=trouble)
            store.write_state(waiting.replace(phase=f"waiting for {who}", updated=time.time()))
            self._before = state

    def _write_back(self, error: RankdeckError | None) -> None:
        before, self._before = self._before, None
        store = None if before is None else self._find_run()
        if store is None or before is None:
            return
        with contextlib.suppress(RankdeckError), store.lock():
            with contextlib.suppress(StateFileError):
                if store.stored_state().host != own():
                    return
            changed = before if error is None else before.replace(error=error.as_dict())
            store.write_state(changed.replace(updated=time.time()))

    def _given_up(self, names: Sequence[str]) -> RankdeckError:
        who = listed(names)
        return RankdeckError(
            f"{who} did not come back within {duration(self._limit_s)}, and with --nodes {self._nodes} the run does "
            "not continue without.",
            "Resume it on all machines when they are there, or on fewer: --nodes 1 trains on this one alone.",
            title="A machine did not come back",
        )
