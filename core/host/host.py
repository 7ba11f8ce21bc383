"""The run host: composes its services, serves ranks and clients, and is the only writer of the run's folder."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from core.checkpoints.full_weights import export_weights
from core.checkpoints.store import CheckpointStore
from core.config import RunConfig
from core.errors import RankdeckError
from core.host.attempt import Attempt
from core.host.lifecycle import RunLifecycle
from core.host.metrics.sink import BackgroundColumns
from core.host.metrics.status import StatusPublisher
from core.host.metrics.stream import MetricsStream
from core.host.outcome import EXIT_FAILED, Outcome, exit_code, metrics_lost, own_failure, with_unkillable
from core.host.rank_processes import Launcher, rank_processes
from core.host.services import HostServices, logging_failure
from core.host.states import HostState
from core.host.watches.disk import ReservedSpace, folder_gone, until_gone
from core.metrics.last_value import last_value
from core.metrics.metrics_file import MetricsWriter
from core.processes import ProcessTree
from core.processes.identity import own
from core.protocol.messages import Hello, Message, StopRequest
from core.protocol.rank_context import ENV_MEETING
from core.protocol.server import Connection, Listener
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

log = logging.getLogger(__name__)

TOKEN_BYTES: Final = 32
SINK_CLOSE_S: Final = 5.0
FINAL_TRIES: Final = 3


class RunHost:
    """One run, from planning to its end. Made and run by ``python -m core.host``; everything is on one event loop.

    The loop's thread never waits for a disk or a driver: metrics go through `MetricsSink`, small files through one
    disk thread, devices through `DeviceSampler`.
    """

    def __init__(self, store: RunStore, process_tree: Callable[[str], ProcessTree] = ProcessTree) -> None:
        first = store.stored_state()
        fresh = first.host is None and first.state == HostState.STARTING
        number = first.attempt if fresh else first.attempt + 1
        meeting = os.environ.get(ENV_MEETING)
        launcher = Launcher(Path(meeting)) if meeting else None
        disk = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._client_token = secrets.token_urlsafe(TOKEN_BYTES)
        self._listener = Listener(first.run_id, self._client_token, self)
        self._status = StatusPublisher(store, _starting(first, number), disk, lambda: self._listener.clients)
        self._evaluated: dict[int, float] = {}
        self._stream = MetricsStream(self._listener, self._status, lambda: self._life.number)
        self._services = HostServices(
            store,
            CheckpointStore(store.checkpoints),
            disk,
            self._listener,
            self._status,
            self._stream,
            rank_processes(launcher, process_tree),
            launcher,
        )
        self._life = RunLifecycle(self._services, first, number)
        self._store = store
        self._reserved: ReservedSpace | None = None

    async def run(self) -> int:
        tasks: list[asyncio.Task[None]] = []
        try:
            self._reserved = await self._services.on_disk(ReservedSpace, self._store.dir)
            port = await self._listener.start()
            await self._listen_to_nodes()
            machine = "" if self._services.launcher is None else self._services.launcher.machine
            await self._services.on_disk(self._store.write_host_json, port, self._client_token, os.getpid(), machine)
            publishing = asyncio.create_task(self._status.run())
            watching = asyncio.create_task(until_gone(self._store.run_toml))
            watching.add_done_callback(self._on_folder_gone)
            tasks += [publishing, watching]
            publishing.add_done_callback(logging_failure("the state is no longer published"))
            self._status.change_phase("planning")
            config, writer, columns = await asyncio.to_thread(self._open_metrics)
            self._stream.open(writer, columns)
            outcome = await self._life.run(config, port)
            code = exit_code(outcome, self._life.ladder.is_hurried)
        except RankdeckError as error:
            log.error("%s", error)
            outcome, code = Outcome("failed", error.as_dict()), error.exit_code
        except Exception as error:
            log.exception("the run host itself failed")
            outcome, code = Outcome("failed", own_failure(error)), EXIT_FAILED
        try:
            code = await self._conclude(outcome, code)
        finally:
            for task in tasks:
                task.cancel()
            await self._close(code)
        return code

    def request_stop(self, now: bool, by: str) -> None:
        """Stop the run for a client or a signal; `now` ends the ranks without a commit.

        A second ordinary request loses nothing: two people may make one each. A second Ctrl+C or click has `now` set.
        """
        self._life.stop(now, by)

    def _open_metrics(self) -> tuple[RunConfig, MetricsWriter, BackgroundColumns]:
        config = self._store.config()
        log_file = None if config.log_file is None else self._store.dir / config.log_file
        writer = MetricsWriter(self._store.metrics, log_file)
        if writer.copy_problem is not None:
            log.warning("%s", writer.copy_problem)
        return config, writer, BackgroundColumns(self._store.dir)

    async def _listen_to_nodes(self) -> None:
        seats = self._services.seats
        if seats is None:
            return
        try:
            await self._listener.listen_on(seats.address, seats.listen_port)
        except OSError as error:
            raise RankdeckError(
                f"Port {seats.listen_port} of {seats.address} cannot be opened ({error}).",
                "Start the run again: another port is taken then.",
                title="A port is taken",
            ) from None

    # the end

    async def _conclude(self, outcome: Outcome, code: int) -> int:
        """Export the model, write the last lines, then the last state. Nothing here waits without a bound."""
        error = outcome.error
        if outcome.model and outcome.kind in ("finished", "stopped"):
            self._status.change_phase("exporting the model")
            try:
                await self._services.on_disk(export_weights, outcome.model, self._store.model)
            except RankdeckError as problem:
                log.error("%s", problem)
                error, code = error or problem.as_dict(), code or EXIT_FAILED
        if outcome.unkillable:
            error = with_unkillable(error, outcome.unkillable)
            code = code or EXIT_FAILED
        kind = HostState.FAILED if outcome.kind == "not_started" else HostState(outcome.kind)
        reason = self._life.reason.cause if self._life.reason is not None and kind is HostState.STOPPED else ""
        whose: dict[str, Any] = {"ranks": [outcome.root.rank]} if outcome.root is not None else {}
        whose |= {"state": str(kind), "step": self._status.state.step, "exit_code": code}
        whose |= {"reason": reason} if reason else {}
        self._stream.emit("failed" if kind is HostState.FAILED else "finished", **whose, **(error or {}))
        if self._life.sampler is not None:
            await asyncio.to_thread(self._life.sampler.close)
        lost = await self._stream.close(SINK_CLOSE_S)
        if lost:
            code = code or EXIT_FAILED
            error = error or metrics_lost(lost)
        log.info("the run is %s, exit code %d%s", kind, code, f": {error['cause']}" if error else "")
        self._life.enter(kind, phase="", error=error, exit_code=code, trouble=None, stopped_by=reason)
        for _ in range(FINAL_TRIES):
            await self._status.flush()
            if not self._status.is_failing:
                break
            if self._reserved is not None:
                await self._services.on_disk(self._reserved.release)
            await asyncio.sleep(0.5)
        return code

    async def _close(self, code: int) -> None:
        await self._listener.close()
        await asyncio.to_thread(self._store.remove_host_json)
        if self._reserved is not None:
            await asyncio.to_thread(self._reserved.release)
        if self._life.monitor is not None:
            await asyncio.to_thread(self._life.monitor.close)
        self._services.disk.shutdown(wait=True)
        if self._services.launcher is not None:
            with contextlib.suppress(RankdeckError):  # its processes see that this one has ended
                await asyncio.to_thread(self._services.launcher.end, code, self._status.state.error)

    # ListenerEvents

    def connected(self, connection: Connection) -> None:
        hello = connection.hello
        if hello is None or hello.role == "client":
            self._status.greet(connection)
        elif self._life.attempt is not None:
            self._life.attempt.connected(connection, hello.rank)

    def message_received(self, connection: Connection, message: Message) -> None:
        hello = connection.hello
        if hello is not None and hello.role == "rank":
            if (attempt := self._attempt_with(hello)) is not None:
                attempt.message_received(hello.rank, message)
        elif isinstance(message, StopRequest):
            self.request_stop(message.now, "client")
        else:
            connection.refuse(f"A client has no business sending a {type(message).__name__}.")

    def lines_received(self, connection: Connection, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        self._life.note_script_steps(parsed)
        self._stream.put(lines, parsed)
        for value in parsed:
            if value["event"] == "eval":
                self._note_evaluation(value)
        hello = connection.hello
        if hello is not None and (attempt := self._attempt_with(hello)) is not None:
            attempt.lines_received(hello.rank, parsed)

    def _note_evaluation(self, line: dict[str, Any]) -> None:
        val_loss, rank = line.get("val_loss"), line.get("rank")
        if isinstance(val_loss, int | float) and isinstance(rank, int):
            self._evaluated[rank] = float(val_loss)
            self._status.progress(val_loss=last_value("val_loss", self._evaluated.values()))

    def closed(self, connection: Connection) -> None:
        hello = connection.hello
        if hello is not None and (attempt := self._attempt_with(hello)) is not None:
            attempt.closed(hello.rank, connection)

    def _attempt_with(self, hello: Hello) -> Attempt | None:
        """The running attempt, if the peer is one of its ranks: those of an earlier one may still be connected."""
        return self._life.attempt if hello.role == "rank" and hello.attempt == self._life.number else None

    def _on_folder_gone(self, watching: asyncio.Task[None]) -> None:
        if not watching.cancelled():
            gone = folder_gone(self._store.dir)
            log.error("%s", gone["cause"])
            self._life.give_up(gone)


def _starting(first: RunState, number: int) -> RunState:
    return first.replace(
        state=str(HostState.STARTING),
        attempt=number,
        host=own(),
        phase="starting",
        error=None,
        exit_code=None,
        fallback=None,
        trouble=None,
        tokens_per_s=None,
        stopped_by="",
    )
