"""Run lifecycle: one attempt after another, with restarts and fallbacks where ranks could not start."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import replace
from typing import Any

from core.config import RunConfig
from core.host.attempt import Attempt
from core.host.attempt_launch import AttemptLaunch, RunContext, damaged_alert, gather_context, prepare_launch
from core.host.device_samples import DeviceSampler, sampled
from core.host.fallback import NextAttempt, StartFallbacks
from core.host.launch_event import ScriptSteps, launch_fields
from core.host.micro_batches import MicroBatches
from core.host.outcome import Outcome
from core.host.services import HostServices
from core.host.states import HostState
from core.host.stop_ladder import StopLadder
from core.host.watches.early_stop import StopReason, StopWatch
from core.host.watches.hang_diagnosis import restart_limit
from core.host.watches.predictions import Predictions
from core.launch.resolved import ResolvedRun, resolve_on
from core.launch.stop_rules import stop_rules
from core.machine.devices.monitor import DeviceMonitor
from core.processes import end_marked, folder_mark
from core.protocol.messages import MicroBatchHalved
from core.recipes.catalog import get_recipe
from core.run_folder.state import RunState

log = logging.getLogger(__name__)


class RunLifecycle:
    """Makes attempts until one has an outcome that stands.

    `lost` has the reason why nothing can be saved any more, `reason` the rule that stops the run.
    """

    def __init__(self, services: HostServices, first: RunState, number: int) -> None:
        self.state = HostState.STARTING
        self.number = number
        self.attempt: Attempt | None = None
        self.ladder = StopLadder(RunConfig().stop_timeout_s)
        self.lost: dict[str, str] | None = None
        self.reason: StopReason | None = None
        self.monitor: DeviceMonitor | None = None
        self.sampler: DeviceSampler | None = None
        self._services = services
        self._first = first
        self._first_world_size = 1
        self._restarts = 0
        self._micro_batches = MicroBatches(services)
        self._script_steps: ScriptSteps | None = None
        self._stop_watch: StopWatch | None = None
        self._predictions = Predictions(services.store.dir, services.disk)

    async def run(self, config: RunConfig, port: int) -> Outcome:
        await self._end_leftovers()
        context = await self._gather_context(config)
        run, fallbacks = context.run, StartFallbacks(context.run.recipe.modes)
        self._first_world_size = run.world_size
        while True:
            if self.lost is not None:
                return Outcome("failed", self.lost)
            if self.ladder.is_asked:
                return Outcome("stopped")
            outcome = await self._one_attempt(run, context, port)
            run = await self._micro_batches.after_attempt(run)
            if (batch := self._micro_batches.next(run, outcome)) is not None and not self._is_final(outcome):
                context = await self._restarted(context)
                self.enter(HostState.STARTING, phase=f"restarting with micro-batch {batch.micro}")
                run = await self._micro_batches.restart(run, batch, outcome, context.checkpoint)
                continue
            if (restart := self._next_restart(run, outcome)) is not None:
                self._note_restart(*restart, outcome)
                context = await self._restarted(context)
                continue
            following = None if self._lacks_processes else fallbacks.after(run, outcome)
            if following is None:
                return await self._with_best_model(outcome)
            self._fall_back(following, narrowed=following.devices != run.devices)
            run = resolve_on(following.config, run.recipe, following.devices, run.platform)

    def enter(self, state: HostState, **fields: Any) -> None:
        log.info("state: %s → %s", self.state, state)
        self.state = state
        self._services.status.change(state=str(state), **fields)

    def stop(self, now: bool, by: str) -> None:
        moment = time.monotonic()
        again = self.ladder.is_asked
        log.info("stop requested (%s)%s", by, ", at once" if now else "")
        self._emit("stop_requested", now=now, by=by)
        if now:
            self.ladder.hurry(moment)
        else:
            self.ladder.ask(moment)
        if self.state is HostState.TRAINING:
            self.enter(HostState.STOPPING, phase="stopping")
        if self.attempt is not None and not again:
            self.attempt.stop_asked()

    def stop_for(self, reason: StopReason) -> None:
        if not self.ladder.is_asked:
            self.reason = reason
            self.stop(False, reason.rule)

    def give_up(self, error: dict[str, str]) -> None:
        self.lost = error
        if self.attempt is not None:
            self.attempt.give_up(error)

    def note_script_steps(self, parsed: list[dict[str, Any]]) -> None:
        """Report where a resumed script continues: its curves are taken back to there."""
        if self._script_steps is not None:
            for resumed in self._script_steps.new_in(parsed):
                self._emit("resumed", resumed_from=resumed)

    # attempts

    async def _end_leftovers(self) -> None:
        """End processes of an earlier attempt whose host and watcher were killed together."""
        ended, left = await asyncio.to_thread(end_marked, folder_mark(self._services.store.dir))
        if not ended and not left:
            return
        pids = ", ".join(map(str, sorted((*ended, *left))))
        cause = f"Processes of an earlier attempt were still running after its host was killed (pid {pids})."
        next_step = "They were ended. You don't need to do anything."
        if left:
            alive = ", ".join(map(str, left))
            next_step = f"End them yourself: process {alive} did not end, even when killed."
        log.warning("%s", cause)
        title = "Leftover processes were ended"
        self._emit("alert", kind="leftovers", title=title, cause=cause, next_step=next_step)

    async def _gather_context(self, config: RunConfig) -> RunContext:
        services = self._services
        self.monitor = monitor = DeviceMonitor()
        recipe = await asyncio.to_thread(get_recipe, config.recipe)
        self.ladder.set_timeout(config.stop_timeout_s, time.monotonic())
        services.status.change_phase("looking at devices, dataset and checkpoints")
        context = await services.on_disk(gather_context, services, self._first.run_id, config, recipe, monitor)
        self._micro_batches.asked = context.run
        for bad in context.damaged:
            self._emit("alert", **damaged_alert(bad, context.checkpoint))
        uuids = await asyncio.to_thread(lambda: sampled(context.run.devices, monitor.devices()))
        self._stop_watch = watch = StopWatch(services, stop_rules(config, recipe), self._first, self.stop_for)
        await services.on_disk(watch.read, services.store.metrics)
        loop = asyncio.get_running_loop()

        def take(rows: list[dict[str, Any]]) -> None:
            if self.attempt is not None:
                self.attempt.sampled(rows)

        def on_samples(rows: list[dict[str, Any]]) -> None:
            services.stream.emit_from_thread("device", rows)
            loop.call_soon_threadsafe(take, rows)

        self.sampler = DeviceSampler(monitor, uuids, on_samples)
        return context

    async def _one_attempt(self, run: ResolvedRun, context: RunContext, port: int) -> Outcome:
        launch = await prepare_launch(
            self._services,
            run,
            context,
            number=self.number,
            halvings=self._micro_batches.halvings,
            restarts=self._restarts,
            port=port,
            fell_back=self._first.fallback is not None,
        )
        self._announce(launch, await self._services.on_disk(self._predictions.predict, run))
        assert self._stop_watch is not None
        self.attempt = Attempt(self._services, launch, self.ladder, self, self._stop_watch, [self._predictions])
        try:
            return await self.attempt.run()
        finally:
            self.attempt = None
            # No rank reads it any more; torch often removes it itself.
            with contextlib.suppress(OSError):
                launch.rendezvous.unlink(missing_ok=True)

    def _announce(self, launch: AttemptLaunch, predicted: dict[str, float | None]) -> None:
        run, checkpoint, status = launch.run, launch.context.checkpoint, self._services.status
        launcher, seats = self._services.launcher, self._services.seats
        self._script_steps = ScriptSteps() if self.number > 1 and run.recipe.self_contained else None
        status.change(
            attempt=self.number,
            mode=run.mode,
            devices=tuple(device.uuid for device in run.devices),
            world_size=run.world_size,
            nodes=() if seats is None else seats.names,
            step=0 if checkpoint is None else checkpoint.step,
            checkpoint=None if checkpoint is None else checkpoint.number,
        )
        method = None if launcher is None else launcher.method
        fields = launch_fields(launch, self.number, self._first.world_size, status.state.fallback, method)
        assert self._stop_watch is not None
        self._stop_watch.launched(fields["resumed_from"])
        self._emit("launch", **fields, **predicted)

    async def _with_best_model(self, outcome: Outcome) -> Outcome:
        watch, checkpoints = self._stop_watch, self._services.checkpoints
        if watch is None or self.reason is None or outcome.kind != "stopped":
            return outcome
        best = await self._services.on_disk(lambda: watch.model(checkpoints.list()))
        return replace(outcome, model=best or outcome.model)

    def _next_restart(self, run: ResolvedRun, outcome: Outcome) -> tuple[int, int] | None:
        failed = outcome.kind == "failed" or (outcome.kind == "not_started" and run.recipe.self_contained)
        if not failed or self._is_final(outcome) or outcome.usage or outcome.root is None or outcome.failure_kind:
            return None
        number, limit = self._restarts + 1, restart_limit(run.config, outcome.root)
        return (number, limit) if number <= limit else None

    def _is_final(self, outcome: Outcome) -> bool:
        given_up = self.lost is not None or self._lacks_processes
        return bool(outcome.unkillable) or self.ladder.is_asked or given_up

    @property
    def _lacks_processes(self) -> bool:
        """Whether a process that a launcher started for a rank is gone: only the launcher can start it again."""
        launcher = self._services.launcher
        return launcher is not None and not launcher.is_whole(self._first_world_size)

    def _note_restart(self, number: int, limit: int, outcome: Outcome) -> None:
        self._restarts += 1
        error = outcome.error or {}
        log.warning("restart %d of %d: %s", number, limit, error.get("cause", ""))
        self._emit("restart", number=number, of=limit, **error)
        self.enter(HostState.STARTING, phase=f"restart {number} of {limit}")

    async def _restarted(self, context: RunContext) -> RunContext:
        self.number += 1
        committed, checkpoints = context.keeper.committed_checkpoint, self._services.checkpoints
        checkpoint, damaged = await self._services.on_disk(lambda: checkpoints.newest_valid(committed()))
        await self._services.on_disk(checkpoints.remove_unfinished)
        return replace(context, checkpoint=checkpoint, damaged=tuple(damaged))

    def _fall_back(self, following: NextAttempt, *, narrowed: bool) -> None:
        log.warning("%s", following.text)
        self._emit(following.event, **following.fields)
        if following.event == "fallback":
            self._services.status.change(fallback=following.text)
        self._services.status.change(phase=following.phase)
        if narrowed and self.sampler is not None:
            self.sampler.narrow([device.uuid for device in following.devices])
        self.number += 1

    def on_halved(self, message: MicroBatchHalved) -> None:
        self._micro_batches.heard(message)

    def on_training(self) -> None:
        if self.state is HostState.STARTING:
            self.enter(HostState.TRAINING, phase="")

    def _emit(self, event: str, **fields: Any) -> None:
        self._services.stream.emit(event, **fields)
