"""Starts, finds, reaches and stops run hosts: the only door to them for the window and the command line.

Nothing here waits without a bound. What a run has done is read from its folder (`core.run_folder.store`); a connection
only says when to look again, and carries wishes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.checkpoints.store import CheckpointStore
from core.config import RunConfig
from core.config.config_file import to_toml
from core.errors import (
    ConfigError,
    ConnectionRefusedByHostError,
    ProtocolError,
    RankdeckError,
    RunBusyError,
    StateFileError,
)
from core.files.atomic import copy_atomic, write_atomic
from core.metrics.metrics_file import MetricsWriter
from core.paths import PACKAGE_FOLDER, default_runs_dir
from core.processes import end_marked, find_marked, folder_mark, spawn_detached
from core.processes.program_environment import host_environment
from core.protocol.codec import HELLO_TIMEOUT_S, MAX_LINE_BYTES, decode, encode
from core.protocol.messages import Hello, Message, Refused, StopRequest, Welcome
from core.recipes.catalog import get_recipe
from core.recipes.outside_code import check_accepted, outside_code
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.resume.plan import ResumePlan
from core.run_folder.early_host import EarlyHost
from core.run_folder.naming import first_name
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.remote_run import NO_CONNECTION
from core.run_folder.state import RunState
from core.run_folder.store import HostInfo, RunStore
from core.training_python import training_python

if TYPE_CHECKING:  # listing runs needs none of it
    from core.launch.resolved import ResolvedRun

CONNECT_TIMEOUT_S: Final = 10.0
STOP_ANSWER_S: Final = 5.0
_POLL_S: Final = 0.03
_READ_BYTES: Final = 1 << 16


def start_run(
    config: RunConfig,
    runs_dir: Path | None = None,
    run_dir: Path | None = None,
    name: str = "",
    resolved: ResolvedRun | None = None,
    host: EarlyHost | None = None,
) -> RunStore:
    """Make a run's folder and start its host, which outlives this process. Returns at once.

    Args:
        config: What is asked, checked (`core.launch.preflight.check`).
        runs_dir: Where run folders live; None is the person's own place.
        run_dir: Exactly this folder instead of a new one.
        name: What the user calls the run; empty: a name is made from its recipe and data.
        resolved: What the check has decided; the host compares it with what it decides itself.
        host: One that was started meanwhile; None starts one.

    Raises:
        UsageError, PreflightError: The folder cannot be made, or the name is too long.
        RankdeckError: The host cannot be started.
    """
    notes = RunNotes().renamed(name)
    store = RunStore.create(runs_dir or default_runs_dir(), config, run_dir, _first_name(config))
    if notes.name:
        write_notes(store.dir, notes)
    if resolved is not None:
        write_atomic(store.resolved, json.dumps(resolved.decision, indent=1) + "\n")
    # Named by the person who starts it, so that resuming need not ask.
    if (code := outside_code(config)) is not None:
        code.remember()
    _spawn_host(store, host)
    return store


def resume_run(plan: ResumePlan) -> RunStore:
    """Carry out a resume plan: start a host on the run's folder, or on a new one for AI-OS's state file.

    Args:
        plan: From `core.resume.planner`.

    Raises:
        RunBusyError: A live host has the run.
        OutsideCodeError: It runs code that the user has not accepted.
        UsageError, PreflightError, RankdeckError: As `start_run`.
    """
    if plan.code is not None:
        check_accepted(plan.code, plan.code_accepted)
        plan.code.remember()
    if plan.run_dir is None:
        store = RunStore.create(plan.runs_dir, plan.config, name=_first_name(plan.config))
        if plan.state_file is not None:
            copy_atomic(plan.state_file.path, store.ledger)
    else:
        store = RunStore.open(plan.run_dir)
        with store.lock():
            _check_not_starting(store)
            if plan.goes_back and plan.checkpoint is not None:
                CheckpointStore(store.checkpoints).go_back(plan.checkpoint)
            if store.config() != plan.config:
                write_atomic(store.run_toml, to_toml(plan.config))
            _say_starting(store)
    _spawn_host(store)
    return store


def _first_name(config: RunConfig) -> str:
    if config.recipe == USER_SCRIPT:
        return first_name(Path(str(config.options.get("script") or "script")).name)
    try:
        recipe = get_recipe(config.recipe)
    except ConfigError:
        return ""
    return first_name(recipe.title, "" if recipe.self_contained else config.dataset_file)


def connect(store: RunStore, timeout_s: float = CONNECT_TIMEOUT_S) -> HostConnection:
    """A connection to the run's host, waiting for one that is just starting.

    Raises:
        ConnectionRefusedByHostError: No host lives, it does not answer, or it does not want us; says which.
        StateFileError: `host.json` or `state.json` is damaged.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        state = store.state()
        if not state.is_live:
            with contextlib.suppress(StateFileError):
                # A host on another machine looks dead from here.
                store.read_host_json()
            raise _unreachable(store, f"it isn't running (state: {state.state})", "Resume the run.")
        info = store.read_host_json()
        if info is not None and (state.host is None or state.host.pid == info.pid):
            try:
                return HostConnection(store, info, min(HELLO_TIMEOUT_S, max(0.1, deadline - time.monotonic())))
            except ConnectionRefusedByHostError:
                # A host that has just ended, or been restarted, says so in its files a moment later.
                if time.monotonic() >= deadline or store.read_host_json() == info:
                    raise
        if info is None and (cut := state.trouble or {}).get("title", "").startswith(NO_CONNECTION):
            raise ConnectionRefusedByHostError(cut.get("cause", ""), cut.get("next_step", ""), title=cut["title"])
        if time.monotonic() >= deadline:
            raise _unreachable(store, f"it did not start listening within {timeout_s:g} s")
        time.sleep(_POLL_S)


def stop_run(store: RunStore, now: bool = False) -> None:
    """Ask a run to stop: at the next step boundary, everything committed; or `now`, without.

    Returns when the host has taken note of it; `wait_for_end` waits for the rest.

    Raises:
        ConnectionRefusedByHostError: As `connect`.
    """
    connection = connect(store)
    try:
        connection.send(StopRequest(now))
        connection.finish(STOP_ANSWER_S)
    finally:
        connection.close()


def end_leftovers(store: RunStore) -> tuple[list[int], list[int]]:
    """End processes that a run has left behind whose host and its watcher were killed together (Linux).

    Returns:
        Pids that were ended, and pids that would not die.

    Raises:
        RunBusyError: A live host has the run.
        PreflightError: Its folder cannot be written.
    """
    if not find_marked(folder_mark(store.dir)):
        return [], []
    with store.lock():  # no host can start ranks meanwhile
        _check_not_starting(store)
        return end_marked(folder_mark(store.dir))


def find_leftovers(stores: Sequence[RunStore]) -> dict[Path, list[int]]:
    """Run folder → pids of processes that a run which is not live has left behind; looks once for all runs."""
    marks = find_marked("")
    found: dict[Path, list[int]] = {}
    for store in stores if marks else ():
        prefix = folder_mark(store.dir)
        pids = sorted(process.pid for process, mark in marks.items() if mark.startswith(prefix))
        if pids and not store.is_locked():
            found[store.dir] = pids
    return found


def wait_until(store: RunStore, reached: Callable[[RunState], bool], timeout_s: float) -> RunState:
    """The run's state as soon as it fulfils `reached`, or as it is when the time is over or the run has ended.

    Raises:
        StateFileError: `state.json` is damaged.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        state = store.state()
        if reached(state) or not state.is_live or time.monotonic() >= deadline:
            return state
        time.sleep(_POLL_S)


def wait_for_end(store: RunStore, timeout_s: float) -> RunState:
    """The run's last state, or the one it is in when the time is over."""
    return wait_until(store, lambda state: not state.is_live, timeout_s)


class HostConnection:
    """An accepted connection to a run host, for one thread at a time.

    Args:
        store: The run, for the words of errors.
        info: Where its host listens.
        timeout_s: For connecting and being welcomed.

    Raises:
        ConnectionRefusedByHostError: Nothing listens there, it does not answer in time, or it refuses us.
    """

    def __init__(self, store: RunStore, info: HostInfo, timeout_s: float) -> None:
        self._store = store
        self._partial = b""
        self._pending: list[Message] = []
        deadline = time.monotonic() + timeout_s
        try:
            self._socket = socket.create_connection(("127.0.0.1", info.port), timeout=timeout_s)
        except OSError as error:
            raise _unreachable(store, f"nothing listens on its port {info.port} ({error})") from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.send(Hello("client", info.token, pid=os.getpid()))
            self._wait_for_welcome(deadline)
        except BaseException:
            self._socket.close()
            raise

    def send(self, message: Message) -> None:
        """Send one message; raises `ConnectionRefusedByHostError`."""
        try:
            self._socket.settimeout(HELLO_TIMEOUT_S)
            self._socket.sendall(encode(message))
        except OSError as error:
            raise _unreachable(self._store, f"it closed the connection ({error})") from None

    def messages(self, timeout_s: float) -> list[Message]:
        """Return the host's messages since the last call; wait for one for `timeout_s` at most.

        Raises:
            ConnectionRefusedByHostError: The host has closed the connection; everything before was returned.
        """
        if not self._pending:
            self._read(timeout_s)
        pending, self._pending = self._pending, []
        return pending

    def finish(self, timeout_s: float) -> None:
        """Close this side, and wait until the host has read everything that was sent.

        A connection that is closed with something unread is reset, and a request that was on its way may be lost.

        Raises:
            ConnectionRefusedByHostError: The host did not close its end in time.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(_READ_BYTES):
                    return
        except TimeoutError:
            pass
        except OSError:
            return  # the host has ended meanwhile
        raise _unreachable(self._store, f"it did not act on the request within {timeout_s:g} s")

    def close(self) -> None:
        """End the connection; the run does not mind."""
        self._socket.close()

    def _wait_for_welcome(self, deadline: float) -> None:
        while not self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _unreachable(self._store, "it did not answer in time")
            self._read(left)
        answer = self._pending.pop(0)
        if not isinstance(answer, Welcome):
            reason = answer.reason if isinstance(answer, Refused) else "the answer did not come from a run host"
            raise _unreachable(self._store, f"it refused: {reason}", "Stop the run's host process and resume the run.")

    def _read(self, timeout_s: float) -> None:
        try:
            self._socket.settimeout(max(0.001, timeout_s))
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return
        except OSError as error:
            raise _unreachable(self._store, f"the connection broke ({error})") from None
        if not data:
            raise _unreachable(self._store, "it has ended, or closed the connection")
        *lines, self._partial = (self._partial + data).split(b"\n")
        try:
            if len(self._partial) > MAX_LINE_BYTES:
                raise ProtocolError("A line has no end.")
            found = [decode(line) for line in lines]
        except ProtocolError as error:
            reason = f"the answer did not come from a run host, or from another version ({error.cause})"
            raise _unreachable(self._store, reason, error.next_step) from None
        self._pending += [message for message in found if isinstance(message, Message)]


def _check_not_starting(store: RunStore) -> None:
    """Refuse a run that another process has just resumed, whose host has not taken the lock yet.

    Called with the lock held, so the host's process alone is asked for.
    """
    state = store.seen_without_lock(store.stored_state())
    if state.is_live:
        raise RunBusyError(
            f"{state.run_id} has just been resumed by another process.",
            f"Watch it: rankdeck attach {store.dir.name}",
        )


def _say_starting(store: RunStore) -> None:
    """The next attempt's state before its host has written its own, so that the old one is not taken for its end."""
    state = store.stored_state()
    fresh: dict[str, Any] = {"host": None, "phase": "", "error": None, "exit_code": None, "trouble": None}
    fresh |= {"state": "starting", "attempt": state.attempt + 1, "updated": time.time()}
    store.write_state(state.replace(**fresh))


def _spawn_host(store: RunStore, early: EarlyHost | None = None) -> None:
    attempt = store.stored_state().attempt  # read before: then the state is the host's
    process = None if early is None else early.take(store.dir)
    if process is None:
        argv = [str(training_python().executable), "-m", "core.host", str(store.dir)]
        try:
            process = spawn_detached(argv, PACKAGE_FOLDER, host_environment(), store.logs / "host.log")
        except RankdeckError as error:
            _say_failed(store, error)
            raise
    store.write_spawned_host(attempt, process)


def _say_failed(store: RunStore, error: RankdeckError) -> None:
    """Write the end of an attempt that got no host: an event, which lists of alerts read, and then the state."""
    state = store.stored_state()
    line = {"ts": time.time(), "event": "failed", "rank": -1, "attempt": state.attempt}
    line |= {"state": "failed", "step": state.step, "exit_code": error.exit_code, **error.as_dict()}
    with contextlib.suppress(RankdeckError), MetricsWriter(store.metrics) as writer:
        writer.append([json.dumps(line).encode()])
    store.write_state(state.replace(state="failed", error=error.as_dict(), exit_code=error.exit_code))


def _unreachable(store: RunStore, why: str, next_step: str = "") -> ConnectionRefusedByHostError:
    if not next_step:
        log = store.logs / "host.log"
        next_step = f"{f'Look at {log}. ' if log.exists() else ''}If the run isn't running any more, resume it."
    return ConnectionRefusedByHostError(f"The host of run {store.dir.name} cannot be reached: {why}.", next_step)
