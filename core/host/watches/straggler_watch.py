"""Straggler watch: judges every few seconds which device the others wait for, and reports when that changes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.config.fields import Needs
from core.errors import sentences
from core.formatting import listed, percent
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.watches.straggler import (
    ENOUGH,
    DeviceConditions,
    Judgement,
    RankStep,
    Straggler,
    find_straggler,
    rank_step,
    straggler_reason,
)
from core.host.watches.watch import Watch
from core.machine.devices.device import POWER_CAP, Device
from core.machine.devices.monitor import DeviceMonitor

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 4.0
_MOST_STEPS: Final = 512
_MOST_OPEN: Final = 10_000
# Readings of a device, one a second, of which its throttle reasons are taken.
_SAMPLES: Final = 10
_NAMED: Final = 2


class StragglerWatch(Watch):
    """Watches the ranks of one attempt, where they train in step and the mode measures what they wait."""

    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._emit = services.stream.emit
        self._ranks = ranks
        self._is_on = ranks.synchronised and len(ranks.all) > 1 and not ranks.run.recipe.self_contained
        self._open: dict[int, dict[int, RankStep]] = {}
        self._steps: deque[Sequence[RankStep]] = deque(maxlen=_MOST_STEPS)
        self._judgement = Judgement()
        self._due: float | None = None
        self._readings: dict[str, deque[Mapping[str, Any]]] = {}
        self._reporting: asyncio.Task[None] | None = None

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        """A step counts once all ranks have reported it."""
        if not self._is_on:
            return
        for line in lines:
            step = line.get("step")
            if line.get("event") != "step" or not isinstance(step, int) or (found := rank_step(line)) is None:
                continue
            reported = self._open.setdefault(step, {})
            reported[rank.number] = found
            if len(reported) == len(self._ranks.all):
                self._steps.append([reported[one.number] for one in self._ranks])
                while self._open and (first := next(iter(self._open))) <= step:
                    del self._open[first]  # ranks report in order, so nothing more comes of earlier steps
        if len(self._open) > _MOST_OPEN:
            self._open.clear()

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._readings.setdefault(str(row.get("uuid")), deque(maxlen=_SAMPLES)).append(row)

    def tick(self, now: float, phase: AttemptPhase) -> None:
        """Judges the steps since the last look, every 4 s if they are enough."""
        if phase is not AttemptPhase.TRAINING:
            return
        if self._due is None:
            self._due = now + LOOK_EVERY_S
        if now < self._due or len(self._steps) < ENOUGH or self._reporting is not None:
            return
        self._due = now + LOOK_EVERY_S
        before = self._judgement
        self._judgement = before.after(find_straggler(tuple(self._steps), before.least))
        self._steps.clear()
        found = self._judgement.straggler
        if found is before.straggler:
            return
        if found is None:
            self._report_end(before.straggler)
        else:
            self._reporting = asyncio.get_running_loop().create_task(self._report(found))
            self._reporting.add_done_callback(self._reported)

    def cancel(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()

    async def close(self) -> None:
        if self._reporting is not None:
            self.cancel()
            await asyncio.wait([self._reporting])

    async def _report(self, found: Straggler) -> None:
        """Says who it is and why. A driver in trouble answers late, so it is asked in a thread."""
        run, names = self._ranks.run, [rank.device for rank in self._ranks]
        here = await asyncio.get_running_loop().run_in_executor(None, self._conditions, self._ranks[found.slowest])
        reason = straggler_reason(
            found,
            names,
            here,
            can_balance=Needs.DDP in run.has,
            is_balanced=run.config.balance == "measured",
        )
        who, waiting = listed([names[rank] for rank in found.ranks]), listed([names[rank] for rank in found.others])
        verb = "waits" if len(found.others) == 1 else "wait"
        text = f"{waiting} {verb} {percent(found.lost)} of each step for {who}."
        log.info("straggler: %s (%s)", text, reason.kind)
        step = max(rank.step for rank in self._ranks)
        figures = {
            "ranks": list(found.ranks),
            "lost": round(found.lost, 4),
            "waits": {str(rank): round(share, 4) for rank, share in enumerate(found.waits)},
            "reason": reason.kind,
        }
        self._emit("straggler", step=step, text=text, **figures)
        self._emit(
            "alert",
            kind="straggler",
            step=step,
            title=f"{who} {'slows' if len(found.ranks) == 1 else 'slow'} down the other devices",
            cause=sentences(text, reason.cause),
            next_step=reason.next_step,
            window_step=reason.window_step,
            gain=round(reason.gain, 4),
            **figures,
        )

    def _report_end(self, before: Straggler | None) -> None:
        names = [self._ranks[rank].device for rank in (before.ranks if before is not None else ())]
        step = max(rank.step for rank in self._ranks)
        self._emit("straggler", step=step, ranks=[], text=f"The other devices no longer wait for {listed(names)}.")

    def _reported(self, task: asyncio.Task[None]) -> None:
        self._reporting = None
        if not task.cancelled() and task.exception() is not None:
            log.error("a straggler could not be reported", exc_info=task.exception())

    def _conditions(self, rank: Rank) -> DeviceConditions:
        """Reads a rank's device, off the event loop."""
        device = rank.command.device
        readings = list(self._readings.get(device.uuid, ()))
        held = dict.fromkeys(why for row in readings for why in row.get("throttle_reasons") or () if why != POWER_CAP)
        programs = gpu_programs(device, [other.pid or -1 for other in self._ranks])
        celsius = readings[-1].get("temperature_celsius") if readings else None
        return DeviceConditions(tuple(held), celsius, programs[:_NAMED])


def gpu_programs(device: Device, ours: Sequence[int]) -> tuple[str, ...]:
    """Other programs that compute on a GPU, as text; empty for other devices."""
    if device.kind != "cuda":
        return ()
    with DeviceMonitor(with_processes=True) as monitor:
        monitor.devices()
        (processes,) = [s.processes for s in monitor.sample() if s.uuid == device.uuid] or [()]
    if not any(process.pid in ours for process in processes) and len(processes) < _NAMED:
        return ()  # in a container the driver may give pids of the machine: the only one is this run's
    return tuple(f"{p.name or 'another program'} (process {p.pid})" for p in processes if p.pid not in ours)
