"""A run on several machines between two hosts: what its state says, above all while it waits for lost machines.

A host that ends because something was lost leaves the run to the command on its machine, and says in `state.json` that
it starts again. Where it may not continue with the machines that are left (`--nodes N:N`), the command says for whom it
waits, until the next host is started. Where none will be, it says how the run has ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from core.errors import RankdeckError
from core.formatting import duration, listed
from core.processes.identity import ProcessId, own
from core.run_folder.state import WAITS_TITLE
from core.run_folder.store import RunStore

_TRIES_AFTER_S: Final = 0.5  # the host that has lost a machine writes its own end first


def end_between_hosts(
    store: RunStore, command: ProcessId | None, error: RankdeckError | None, *, is_stopped: bool = False
) -> None:
    """Says how a run has ended that this command was to continue; says nothing of any other run.

    Args:
        store: The run.
        command: That which stays when a host ends.
        error: Why it does not continue; None: the reason why its last host ended stands.
        is_stopped: The user has ended it.
    """
    with contextlib.suppress(RankdeckError), store.lock():
        state = store.stored_state()
        if state.is_continued_by(command):
            ended = "stopped" if is_stopped else "failed"
            store.write_state(state.ended(ended, None if error is None else error.as_dict()))


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
        self._has_said = False

    def look(self) -> None:
        """Notes who is missing; raises `RankdeckError` when the time is over."""
        names = self._missing()
        if not names:
            self._since, self._has_said = None, False
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > self._limit_s:
            raise self._given_up(names)
        if not self._has_said and now - self._since > _TRIES_AFTER_S:
            self._say_waiting(names)

    def close(self, *, is_stopped: bool, error: RankdeckError | None = None) -> None:
        """No other host follows; `is_stopped`: the user has ended it, and so the run. `error`: why not."""
        if (store := self._find_run()) is not None:
            end_between_hosts(store, own(), error, is_stopped=is_stopped)

    def _say_waiting(self, names: Sequence[str]) -> None:
        store = self._find_run()
        if store is None:
            return
        with contextlib.suppress(RankdeckError), store.lock():  # its host lives still, or the file cannot be read
            state = store.stored_state()
            if not state.is_continued_by(own()):
                return
            who = listed(names)
            trouble = {
                "title": WAITS_TITLE,
                "cause": f"{who}, or the network to it, is gone, and with {self._nodes} machines asked for the run "
                f"does not continue without. It waits for {who} up to {duration(self._limit_s)}.",
                "next_step": f"Start the command of the run on {who} again. To train with what is left, stop the run "
                "and resume it on fewer machines.",
            }
            store.write_state(state.replace(trouble=trouble, phase=f"waiting for {who}", updated=time.time()))
            self._has_said = True

    def _given_up(self, names: Sequence[str]) -> RankdeckError:
        who = listed(names)
        return RankdeckError(
            f"{who} did not come back within {duration(self._limit_s)}, and with --nodes {self._nodes} the run does "
            "not continue without.",
            "Resume it on all machines when they are there, or on fewer: --nodes 1 trains on this one alone.",
            title="A machine did not come back",
        )
