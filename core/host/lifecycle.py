"""Run lifecycle: one attempt after another, with restarts after a failure and fallbacks where ranks could not start."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import replace
from typing import Any

from core.checkpoints.restore_plan import RestorePlan
from core.checkpoints.store import Checkpoint
from core.config import RunConfig
from core.host.attempt import Attempt
from core.host.attempt_context import AttemptContext
from core.host.attempt_launch import prepare_launch
from core.host.context import RunContext, damaged_alert, gather_context
from core.host.device_samples import DeviceSampler, sampled
from core.host.fallback import NextAttempt, StartFallbacks
from core.host.launch_event import ScriptSteps, launch_fields, launch_notes, resumed_from
from core.host.leftovers import end_leftovers
from core.host.outcome import Outcome
from core.host.services import HostServices
from core.host.states import HostState
from core.host.stop_ladder import StopLadder
from core.host.work_plan import total_steps
from core.launch.plan import LaunchPlan
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import DeviceMonitor
from core.processes import folder_mark, new_mark
from core.recipes.catalog import get_recipe
from core.run_folder.store import RunState

log = logging.getLogger(__name__)


class RunLifecycle:
    """Makes attempts until one has an outcome that stands, and publishes what they report (`AttemptEvents`).

    Args:
        services: The host's.
        first: The run's state as the host found it.
        number: The number of this host's first attempt.

    Attributes:
        state: The run's state.
        number: The number of the attempt that runs, or comes next.
        attempt: The attempt that runs.
        ladder: How far a stop has got.
        lost: Why nothing can be saved any more; None while it can.
        monitor: Asks the drivers; None before devices are looked at.
        sampler: Samples the run's devices; None before.
    """

    def __init__(self, services: HostServices, first: RunState, number: int) -> None:
        self.state = HostState.STARTING
        self.number = number
        self.attempt: Attempt | None = None
        self.ladder = StopLadder(RunConfig().stop_timeout_s)
        self.lost: dict[str, str] | None = None
        self.monitor: DeviceMonitor | None = None
        self.sampler: DeviceSampler | None = None
        self._services = services
        self._first = first
        self._context: RunContext | None = None
        self._run: ResolvedRun | None = None
        self._plan: LaunchPlan | None = None
        self._restore_plan = RestorePlan((), ())
        self._restarts = 0
        self._script_steps = ScriptSteps()

    async def run(self, config: RunConfig, port: int) -> Outcome:
        """All attempts.

        Args:
            config: What was asked for.
            port: The listener's.
        """
        leftovers = await asyncio.to_thread(end_leftovers, self._services.store.dir)
        if leftovers is not None:
            log.warning("%s", leftovers["cause"])
            self.emit("alert", **leftovers)
        context = await self._gather_context(config)
        run, fallbacks = context.run, StartFallbacks(context.run.recipe.modes)
        while True:
            if self.lost is not None:
                return Outcome("failed", self.lost)
            if self.ladder.is_asked:
                return Outcome("stopped")
            plan, outcome = await self._one_attempt(run, context, port)
            if self._may_restart(run, outcome):
                context = await self._restart(run.config.max_restarts, context, outcome)
                continue
            following = fallbacks.after(run, plan, outcome)
            if following is None:
                return outcome
            self._fall_back(following, narrowed=following.devices != run.devices)
            run = resolve_on(following.config, run.recipe, following.devices, run.platform)

    def enter(self, state: HostState, **fields: Any) -> None:
        """Moves the run to a state, published with these fields."""
        log.info("state: %s → %s", self.state, state)
        self.state = state
        self._services.status.change(state=str(state), **fields)

    def give_up(self, error: dict[str, str]) -> None:
        """Ends the run: nothing can be saved any more."""
        self.lost = error
        if self.attempt is not None:
            self.attempt.give_up(error)

    def note_script_steps(self, parsed: list[dict[str, Any]]) -> None:
        """Reports where a resumed script continues: its curves are taken back to there."""
        if self.number > 1 and self._plan is not None and self._plan.self_contained:
            for resumed in self._script_steps.new_in(parsed):
                self.emit("resumed", resumed_from=resumed)

    # attempts

    async def _gather_context(self, config: RunConfig) -> RunContext:
        services = self._services
        self.monitor = monitor = DeviceMonitor()
        recipe = await asyncio.to_thread(get_recipe, config.recipe)
        self.ladder = self.ladder.with_timeout(config.stop_timeout_s, time.monotonic())
        self.phase_changed("looking at devices, dataset and checkpoints")
        context = await services.on_disk(
            gather_context, services.store, self._first.run_id, config, recipe, monitor, services.checkpoints
        )
        for bad in context.damaged:
            self.emit("alert", **damaged_alert(bad, context.checkpoint))
        uuids = await asyncio.to_thread(lambda: sampled(context.run.devices, monitor.devices()))
        self.sampler = DeviceSampler(monitor, uuids, lambda rows: services.stream.emit_from_thread("device", rows))
        return context

    async def _one_attempt(self, run: ResolvedRun, context: RunContext, port: int) -> tuple[LaunchPlan, Outcome]:
        assert self.monitor is not None
        launch = await prepare_launch(
            self._services,
            run,
            context,
            number=self.number,
            restarts=self._restarts,
            port=port,
            driver=self.monitor.driver,
            fell_back=self._first.fallback is not None,
        )
        self._run, self._context, self._plan, self._restore_plan = run, context, launch.plan, launch.restore_plan
        self._announce(run, launch.plan, context)
        self.attempt = Attempt(
            AttemptContext(
                plan=launch.plan,
                checkpoint=context.checkpoint,
                restore_plan=launch.restore_plan,
                run=run,
                checkpoints=self._services.checkpoints,
                keeper=context.keeper,
                disk=self._services.disk,
                ladder=self.ladder,
                start_timeout_s=run.config.start_timeout_s,
                keep_checkpoints=run.config.keep_checkpoints,
                survivor_timeout_s=run.config.stop_timeout_s,
                processes=self._services.process_tree(new_mark(folder_mark(self._services.store.dir))),
            ),
            self,
        )
        try:
            return launch.plan, await self.attempt.run()
        finally:
            self.attempt = None
            with contextlib.suppress(OSError):  # no rank reads it any more; torch often removes it itself
                launch.rendezvous.unlink(missing_ok=True)

    def _announce(self, run: ResolvedRun, plan: LaunchPlan, context: RunContext) -> None:
        checkpoint, status = context.checkpoint, self._services.status
        self._script_steps = ScriptSteps()
        status.change(
            attempt=self.number,
            mode=plan.mode,
            devices=tuple(command.device.uuid for command in plan.ranks),
            world_size=plan.world_size,
            step=0 if checkpoint is None else checkpoint.step,
            checkpoint=None if checkpoint is None else checkpoint.number,
        )
        resumed = resumed_from(plan, checkpoint, self.number, self._first.world_size)
        notes = launch_notes(context.run, run.config, plan, status.state.fallback, self._restore_plan.note)
        self.emit("launch", **launch_fields(run, plan, checkpoint, resumed), notes=notes)

    def _may_restart(self, run: ResolvedRun, outcome: Outcome) -> bool:
        failed = outcome.kind == "failed" or (outcome.kind == "not_started" and run.recipe.self_contained)
        final = outcome.usage or outcome.unkillable or outcome.root is None or self.ladder.is_asked
        return failed and not final and self.lost is None and self._restarts < run.config.max_restarts

    async def _restart(self, limit: int, context: RunContext, outcome: Outcome) -> RunContext:
        """Reports the restart, and finds the newest checkpoint for the next attempt to continue from."""
        self._restarts += 1
        self.number += 1
        error = outcome.error or {}
        log.warning("restart %d of %d: %s", self._restarts, limit, error.get("cause", ""))
        self.emit("restart", number=self._restarts, of=limit, **error)
        self.enter(HostState.STARTING, phase=f"restart {self._restarts} of {limit}")
        committed, checkpoints = context.keeper.committed_checkpoint, self._services.checkpoints
        checkpoint, damaged = await self._services.on_disk(lambda: checkpoints.newest_valid(committed()))
        await self._services.on_disk(checkpoints.remove_unfinished)
        return replace(context, checkpoint=checkpoint, damaged=tuple(damaged))

    def _fall_back(self, following: NextAttempt, *, narrowed: bool) -> None:
        """Reports which attempt follows one that could not start, and why."""
        log.warning("%s", following.text)
        self.emit(following.event, **following.fields)
        if following.event == "fallback":
            self._services.status.change(fallback=following.text)
        self._services.status.change(phase=following.phase)
        if narrowed and self.sampler is not None:
            self.sampler.narrow([device.uuid for device in following.devices])
        self.number += 1

    # AttemptEvents

    def phase_changed(self, phase: str) -> None:
        if phase != self._services.status.state.phase:
            log.info("phase: %s", phase or "-")
            self._services.status.change(phase=phase)

    def training_began(self) -> None:
        self._watch_processes()
        if self.state is HostState.STARTING:
            self.enter(HostState.TRAINING, phase="")

    def data_ready(self) -> None:
        run, context = self._run, self._context
        if run is None or context is None or run.recipe.self_contained:
            return  # a script decides itself how many steps it makes
        if context.keeper.ledger is not None:
            total = total_steps(run, context.keeper.ledger, dict(enumerate(self._restore_plan.steps)))
            self._services.status.change(total_steps=total)
        self._watch_processes()

    def stepped(self, step: int, epoch: int, loss: float | None, tokens_per_s: float | None) -> None:
        self._services.status.progress(step=step, epoch=epoch, loss=loss, tokens_per_s=tokens_per_s)

    def goal_moved(self, total_steps: int | None, text: str) -> None:
        self._services.status.change(total_steps=total_steps, goal=text)

    def committed(self, checkpoint: Checkpoint) -> None:
        self._services.status.change(checkpoint=checkpoint.number)

    def emit(self, event: str, **fields: Any) -> None:
        self._services.stream.emit(event, **fields)

    def settle_metrics(self, timeout_s: float) -> bool:
        return self._services.stream.settle(timeout_s)

    def _watch_processes(self) -> None:
        if self.monitor is not None and self.attempt is not None:
            self.monitor.watch(self.attempt.processes)
