"""The run host: composes the parts, walks through the run's states, and is the only writer of its folder."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from core.checkpoints.full_weights import export_weights
from core.checkpoints.restore_plan import CarryOver, carry_over, policy_for
from core.checkpoints.store import Generation, Generations
from core.config import RunConfig
from core.config.config_file import to_toml
from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.host.attempt import Attempt
from core.host.attempt_context import AttemptContext
from core.host.context import RunContext, damaged_alert, gather_context
from core.host.device_samples import DeviceSampler, sampled
from core.host.disk.folder_watch import folder_gone, until_gone
from core.host.disk.reserved_space import ReservedSpace
from core.host.environment import describe_environment
from core.host.lifecycle import NextAttempt, StartFallbacks, launch_notes, leftovers_alert
from core.host.metrics.background_columns import BackgroundColumns
from core.host.metrics.status import StatusPublisher
from core.host.metrics.stream import MetricsStream
from core.host.outcome import EXIT_FAILED, Outcome, exit_code, own_failure, with_unkillable
from core.host.states import HostState
from core.host.stop_ladder import StopLadder
from core.host.work_plan import total_steps
from core.launch.plan import LaunchPlan, LaunchSite, plan_launch
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import DeviceMonitor
from core.machine.platform import free_port, rendezvous_folder
from core.metrics.metrics_file import MetricsWriter
from core.processes import end_marked, folder_mark, new_mark
from core.processes.identity import own
from core.protocol.messages import CommitRequest, Message, StopRequest
from core.protocol.rank_context import CONFIG_FILE
from core.protocol.server import Connection, Listener
from core.recipes.manifest import get_recipe
from core.run_folder.store import RunState, RunStore

log = logging.getLogger(__name__)

TOKEN_BYTES: Final = 32
SINK_CLOSE_S: Final = 5.0
FINAL_TRIES: Final = 3
T = TypeVar("T")


class RunHost:
    """One run, from planning to its end. Made and run by ``python -m core.host``; everything is on one event loop.

    The loop's thread never waits for a disk or a driver: metrics go through `MetricsSink`, small files through one
    disk thread, devices through `DeviceSampler`.

    Args:
        store: The run's folder, locked by this process.
    """

    def __init__(self, store: RunStore) -> None:
        self._loop = asyncio.get_running_loop()
        self._store = store
        self._config = RunConfig()
        self._first = store.stored_state()
        fresh = self._first.host is None and self._first.state == HostState.STARTING
        self._number = self._first.attempt if fresh else self._first.attempt + 1
        self._disk: Executor = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._client_token = secrets.token_urlsafe(TOKEN_BYTES)
        self._listener = Listener(self._first.run_id, self._client_token, self)
        self._status = StatusPublisher(store, self._starting(), self._disk, lambda: self._listener.clients)
        self._stream = MetricsStream(self._listener, self._status, lambda: self._number)
        self._state = HostState.STARTING
        self._ladder = StopLadder(self._config.stop_timeout_s)
        self._monitor: DeviceMonitor | None = None
        self._sampler: DeviceSampler | None = None
        self._attempt: Attempt | None = None
        self._context: RunContext | None = None
        self._plan: LaunchPlan | None = None
        self._carry = CarryOver((), ())
        self._run: ResolvedRun | None = None
        self._port = 0
        self._reserved: ReservedSpace | None = None
        self._gone: dict[str, str] | None = None
        self._restarts = 0
        self._goes_on: set[int] = set()
        self._generations = Generations(store.generations)

    async def run(self) -> int:
        """The whole run.

        Returns:
            The exit code.
        """
        tasks: list[asyncio.Task[None]] = []
        try:
            self._reserved = await self._on_disk(ReservedSpace, self._store.dir)
            self._port = await self._listener.start()
            await self._on_disk(self._store.write_host_json, self._port, self._client_token, os.getpid())
            ticking = self._loop.create_task(self._status.run())
            watching = self._loop.create_task(until_gone(self._store.run_toml))
            watching.add_done_callback(self._on_folder_gone)
            tasks += [ticking, watching]
            ticking.add_done_callback(_log_failure)
            outcome = await self._work()
            code = exit_code(outcome, self._ladder.is_hurried)
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
            await self._close()
        return code

    def request_stop(self, now: bool, by: str) -> None:
        """A stop, asked for by a client or a signal; `now` ends the ranks without a commit.

        Asking twice for a stop with everything committed is no wish to lose anything: two people may do so. The
        second Ctrl+C and the second click say `now`.
        """
        moment = time.monotonic()
        again = self._ladder.is_asked
        log.info("a stop is asked for by %s%s", by, ", at once" if now else "")
        self.emit("stop_requested", now=now, by=by)
        if now:
            self._ladder.hurry(moment)
        else:
            self._ladder.ask(moment)
        if self._state is HostState.TRAINING:
            self._enter(HostState.STOPPING, phase="stopping")
        if self._attempt is not None and not again:
            self._attempt.stop_asked()

    # the run

    async def _work(self) -> Outcome:
        self.phase_changed("planning")
        self._stream.open(*await self._in_thread(self._open_metrics))
        await self._end_leftovers()
        context = self._context = await self._gather_context()
        run, fallbacks = context.run, StartFallbacks(context.run.recipe.modes)
        while True:
            if self._gone is not None:
                return Outcome("failed", self._gone)
            if self._ladder.is_asked:
                return Outcome("stopped")
            outcome = await self._one_attempt(run)
            plan = self._plan
            if plan is not None and self._may_restart(run, outcome):
                context = self._context = await self._restart(run.config.max_restarts, context, outcome)
                continue
            following = None if plan is None else fallbacks.after(run, plan, outcome)
            if following is None:
                return outcome
            self._begin_again(following, narrowed=following.devices != run.devices)
            run = resolve_on(following.config, run.recipe, following.devices, run.platform)

    def _may_restart(self, run: ResolvedRun, outcome: Outcome) -> bool:
        failed = outcome.kind == "failed" or (outcome.kind == "not_started" and run.recipe.self_contained)
        lost = outcome.usage or outcome.unkillable or outcome.root is None or self._ladder.is_asked
        return failed and not lost and self._gone is None and self._restarts < run.config.max_restarts

    async def _restart(self, limit: int, context: RunContext, outcome: Outcome) -> RunContext:
        """Says so, and finds the newest generation for the next attempt to go on from."""
        self._restarts += 1
        self._number += 1
        words = outcome.error or {}
        log.warning("restart %d of %d: %s", self._restarts, limit, words.get("cause", ""))
        self.emit("restart", number=self._restarts, of=limit, **words)
        self._enter(HostState.STARTING, phase=f"restart {self._restarts} of {limit}")
        committed = context.keeper.committed_generation
        generation, damaged = await self._on_disk(lambda: self._generations.newest_valid(committed()))
        await self._on_disk(self._generations.remove_unfinished)
        return replace(context, generation=generation, damaged=tuple(damaged))

    def _open_metrics(self) -> tuple[MetricsWriter, BackgroundColumns]:
        self._config = self._store.config()
        log_file = None if self._config.log_file is None else self._store.dir / self._config.log_file
        writer = MetricsWriter(self._store.metrics, log_file)
        if writer.copy_problem is not None:
            log.warning("%s", writer.copy_problem)
        return writer, BackgroundColumns(self._store.dir)

    async def _gather_context(self) -> RunContext:
        self._monitor = DeviceMonitor()
        recipe = await self._in_thread(get_recipe, self._config.recipe)
        self._ladder = _moved(self._ladder, self._config.stop_timeout_s)
        self.phase_changed("looking at devices, dataset and generations")
        context = await self._on_disk(
            gather_context, self._store, self._first.run_id, self._config, recipe, self._monitor, self._generations
        )
        self._config = context.run.config
        for bad in context.damaged:
            self.emit("alert", **damaged_alert(bad, context.generation))
        uuids = await self._in_thread(lambda m: sampled(context.run.devices, m.devices()), self._monitor)
        self._sampler = DeviceSampler(self._monitor, uuids, lambda rows: self._stream.emit_from_thread("device", rows))
        return context

    async def _one_attempt(self, run: ResolvedRun) -> Outcome:
        context, monitor = self._context, self._monitor
        assert context is not None and monitor is not None
        self._run, config = run, run.config
        token = secrets.token_urlsafe(TOKEN_BYTES)
        rendezvous = rendezvous_folder(self._store.dir) / f".rendezvous-{self._number}-{secrets.token_hex(4)}"
        site = LaunchSite(
            run_dir=self._store.dir,
            attempt=self._number,
            rendezvous=rendezvous,
            port=self._port,
            token=token,
            generation=None if context.generation is None else context.generation.number,
            python=sys.executable,
            host_pid=os.getpid(),
            restarts=self._restarts,
            master_port=free_port() if run.recipe.self_contained else 0,
        )
        plan = self._plan = plan_launch(run, site)
        self._listener.expect_ranks(self._number, plan.world_size, token)
        environment = describe_environment(context.machine, plan, run.devices, monitor.driver, self._number)
        await self._on_disk(
            write_atomic, self._store.environment, orjson.dumps(environment, option=orjson.OPT_INDENT_2)
        )
        fell_back = self._first.fallback is not None
        carry = self._carry = await self._on_disk(lambda: _carry_over(context.generation, plan, config, fell_back))
        self._announce(run, plan)
        await self._on_disk(write_atomic, self._store.dir / CONFIG_FILE, to_toml(config))
        self._attempt = Attempt(
            AttemptContext(
                plan=plan,
                generation=context.generation,
                carry=carry,
                run=run,
                generations=self._generations,
                keeper=context.keeper,
                disk=self._disk,
                ladder=self._ladder,
                start_timeout_s=config.start_timeout_s,
                keep_generations=config.keep_generations,
                survivor_timeout_s=config.stop_timeout_s,
                mark=new_mark(folder_mark(self._store.dir)),
            ),
            self,
        )
        try:
            return await self._attempt.run()
        finally:
            self._attempt = None
            with contextlib.suppress(OSError):  # nobody reads it any more; torch often removes it itself
                rendezvous.unlink(missing_ok=True)

    def _announce(self, run: ResolvedRun, plan: LaunchPlan) -> None:
        context = self._context
        assert context is not None
        uuids = [command.device.uuid for command in plan.ranks]
        self._status.change(
            attempt=self._number,
            mode=plan.mode,
            devices=tuple(uuids),
            world_size=plan.world_size,
            step=0 if context.generation is None else context.generation.step,
            generation=None if context.generation is None else context.generation.number,
        )
        self.emit(
            "launch",
            mode=plan.mode,
            devices=uuids,
            world_size=plan.world_size,
            backend=plan.backend,
            resumed_from=self._resumed_from(plan),
            generation=None if context.generation is None else context.generation.number,
            total_steps=run.config.steps,
            tokens_per_step=None if plan.self_contained else run.batch.global_ * run.config.seq_len * plan.lanes,
            engine=plan.engine or None,
            notes=launch_notes(context.run, run.config, plan, self._status.state.fallback, self._carry.words),
        )

    def _resumed_from(self, plan: LaunchPlan) -> dict[str, int] | None:
        """Rank → the step its curve is taken back to; None at the very first start, and where that is said later."""
        context = self._context
        self._goes_on.clear()
        if self._number <= 1 or context is None or plan.self_contained:
            return None
        known = {} if context.generation is None else context.generation.positions
        # Of a rank that had no part in the generation, what earlier attempts committed lies below its step.
        otherwise = 0 if context.generation is None else context.generation.step
        ranks = max(plan.world_size, self._first.world_size, *(rank + 1 for rank in known), 0)
        return {str(rank): known[rank].step if rank in known else otherwise for rank in range(ranks)}

    async def _end_leftovers(self) -> None:
        """Ends what an earlier attempt left whose host and watcher were killed together, before it gets in the way."""
        ended, left = await self._in_thread(end_marked, folder_mark(self._store.dir))
        if ended or left:
            alert = leftovers_alert(ended, left)
            log.warning("%s", alert["cause"])
            self.emit("alert", **alert)

    def _begin_again(self, following: NextAttempt, *, narrowed: bool) -> None:
        """Says which attempt follows one that could not start, and why."""
        log.warning("%s", following.text)
        self.emit(following.event, **following.fields)
        if following.event == "fallback":
            self._status.change(fallback=following.text)
        self._status.change(phase=following.phase)
        if narrowed and self._sampler is not None:
            self._sampler.narrow([device.uuid for device in following.devices])
        self._number += 1

    # the end

    async def _conclude(self, outcome: Outcome, code: int) -> int:
        """Exports the model, writes the last lines, then the last state. Nothing here waits without a bound."""
        error = outcome.error
        if outcome.model and outcome.kind in ("finished", "stopped"):
            self.phase_changed("exporting the model")
            try:
                await self._on_disk(export_weights, outcome.model, self._store.model)
            except RankdeckError as problem:
                log.error("%s", problem)
                error, code = error or problem.as_dict(), code or EXIT_FAILED
        if outcome.unkillable:
            error = with_unkillable(error, outcome.unkillable)
            code = code or EXIT_FAILED
        kind = HostState.FAILED if outcome.kind == "not_started" else HostState(outcome.kind)
        event = "failed" if kind is HostState.FAILED else "finished"
        whose = {"ranks": [outcome.root.rank]} if outcome.root is not None else {}
        self.emit(event, state=str(kind), step=self._status.state.step, exit_code=code, **whose, **(error or {}))
        if self._sampler is not None:
            await self._in_thread(self._sampler.close)
        lost = await self._stream.close(SINK_CLOSE_S)
        if lost:
            code = code or EXIT_FAILED
            error = error or {
                "title": "Some metrics are lost",
                "cause": f"The disk was full: at least {lost} lines of metrics could not be written.",
                "next_step": "Free some space before the next run.",
            }
        log.info("the run is %s, exit code %d%s", kind, code, f": {error['cause']}" if error else "")
        self._enter(kind, phase="", error=error, exit_code=code, trouble=None)
        for _ in range(FINAL_TRIES):
            await self._status.flush()
            if not self._status.is_failing:
                break
            if self._reserved is not None:
                await self._on_disk(self._reserved.release)
            await asyncio.sleep(0.5)
        return code

    async def _close(self) -> None:
        await self._listener.close()
        await self._in_thread(self._store.remove_host_json)
        if self._reserved is not None:
            await self._in_thread(self._reserved.release)
        if self._monitor is not None:
            await self._in_thread(self._monitor.close)
        self._disk.shutdown(wait=True)

    # AttemptEvents

    def phase_changed(self, phase: str) -> None:
        if phase != self._status.state.phase:
            log.info("phase: %s", phase or "-")
            self._status.change(phase=phase)

    def training_began(self) -> None:
        if self._monitor is not None and self._attempt is not None:
            self._monitor.watch(self._attempt.processes)
        if self._state is HostState.STARTING:
            self._enter(HostState.TRAINING, phase="")

    def data_ready(self) -> None:
        context, run = self._context, self._run
        if run is not None and run.recipe.self_contained:
            return  # how many steps it makes is its own business
        if context is not None and run is not None and context.keeper.ledger is not None:
            total = total_steps(run, context.keeper.ledger, dict(enumerate(self._carry.steps)))
            self._status.change(total_steps=total)
        if self._monitor is not None and self._attempt is not None:
            self._monitor.watch(self._attempt.processes)

    def stepped(self, step: int, epoch: int, loss: float | None, tokens_per_s: float | None) -> None:
        self._status.progress(step=step, epoch=epoch, loss=loss, tokens_per_s=tokens_per_s)

    def goal_moved(self, total_steps: int | None, text: str) -> None:
        self._status.change(total_steps=total_steps, goal=text)

    def committed(self, generation: Generation) -> None:
        self._status.change(generation=generation.number)

    def emit(self, event: str, **fields: Any) -> None:
        """Writes a line of the host's own into the metrics."""
        self._stream.emit(event, **fields)

    def settle_metrics(self, timeout_s: float) -> bool:
        """Waits, on a thread, until the metrics up to now are safe on the disk; False: they are not."""
        return self._stream.settle(timeout_s)

    # ListenerEvents

    def connected(self, connection: Connection) -> None:
        hello = connection.hello
        if hello is None or hello.role == "client":
            self._status.greet(connection)
        elif self._attempt is not None:
            self._attempt.connected(connection, hello.rank)

    def message_received(self, connection: Connection, message: Message) -> None:
        hello = connection.hello
        if hello is not None and hello.role == "rank":
            if self._attempt is not None and hello.attempt == self._number:
                self._attempt.message_received(hello.rank, message)
        elif isinstance(message, StopRequest):
            self.request_stop(message.now, "a person")
        elif isinstance(message, CommitRequest):
            if self._attempt is not None:
                self._attempt.commit_asked()
        else:
            connection.refuse(f"A client has no business sending a {type(message).__name__}.")

    def lines_received(self, connection: Connection, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        self._note_resumed(parsed)
        self._stream.put(lines, parsed)
        for value in parsed:
            if value["event"] == "eval":
                val_loss = value.get("val_loss")
                self._status.progress(val_loss=float(val_loss) if isinstance(val_loss, int | float) else None)
        hello = connection.hello
        if self._attempt is not None and hello is not None and hello.attempt == self._number:
            self._attempt.lines_received(hello.rank, parsed)

    def _note_resumed(self, parsed: list[dict[str, Any]]) -> None:
        """Where a self-contained program goes on is known once its rank names a step: its curve is taken back to it."""
        if self._number <= 1 or self._plan is None or not self._plan.self_contained:
            return
        for value in parsed:
            if value["event"] == "step" and value["rank"] not in self._goes_on:
                self._goes_on.add(value["rank"])
                step = value.get("step")
                if isinstance(step, int):
                    self.emit("resumed", resumed_from={str(value["rank"]): step - 1})

    def closed(self, connection: Connection) -> None:
        hello = connection.hello
        if hello is not None and hello.role == "rank" and self._attempt is not None and hello.attempt == self._number:
            self._attempt.closed(hello.rank, connection)

    # small things

    def _on_folder_gone(self, watching: asyncio.Task[None]) -> None:
        if watching.cancelled():
            return
        self._gone = folder_gone(self._store.dir)
        log.error("%s", self._gone["cause"])
        if self._attempt is not None:
            self._attempt.give_up(self._gone)

    def _starting(self) -> RunState:
        return self._first.replace(
            state=str(HostState.STARTING),
            attempt=self._number,
            host=own(),
            phase="starting",
            error=None,
            exit_code=None,
            fallback=None,
            trouble=None,
            tokens_per_s=None,
        )

    def _enter(self, state: HostState, **fields: Any) -> None:
        log.info("state: %s → %s", self._state, state)
        self._state = state
        self._status.change(state=str(state), **fields)

    def _on_disk(self, call: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        return self._loop.run_in_executor(self._disk, call, *arguments)

    def _in_thread(self, call: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        return self._loop.run_in_executor(None, call, *arguments)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the state is not made known any more", exc_info=task.exception())


def _carry_over(generation: Generation | None, plan: LaunchPlan, config: RunConfig, fell_back: bool) -> CarryOver:
    if plan.self_contained:
        positions = {} if generation is None else generation.positions
        steps = tuple(positions[rank].step if rank in positions else 0 for rank in range(plan.world_size))
        return CarryOver(("",) * plan.world_size, steps)
    synchronise = plan.lanes > 1 and config.sync_every is not None
    policy = policy_for(config.merge_policy, fell_back)
    return carry_over(generation, plan.mode, plan.world_size, policy, synchronise=synchronise)


def _moved(ladder: StopLadder, timeout_s: float) -> StopLadder:
    """A ladder with the run's own limit, on the same rung."""
    moved = StopLadder(timeout_s)
    if ladder.is_asked:
        moved.ask(time.monotonic())
    if ladder.is_hurried:
        moved.hurry(time.monotonic())
    return moved
