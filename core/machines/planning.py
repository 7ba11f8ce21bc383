"""Planning of a move: what resuming a run on another machine, or here what is there, would do.

Nothing of the run is sent or fetched for it: the plan is made where the run is, with the devices of where it will be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.formatting import byte_size
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import Platform, this_platform
from core.machines.look import look_at, look_through
from core.machines.machine import THERE, Machine
from core.machines.moving import check_not_continued, machine_of, moved_changes
from core.machines.session import serving
from core.machines.starting import START_LIMIT_S
from core.recipes.outside_code import outside_code
from core.resume.plan import PlanSummary
from core.resume.planner import plan_resume
from core.run_folder.remote_run import read_remote
from core.run_folder.store import RunStore


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that another machine has made."""

    plan: PlanSummary


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What will happen if a run resumes where the run or its devices are another machine's.

    Attributes:
        run_dir: The run here.
        machine: Where it will train; None: on this computer.
        changes: As they were asked for.
        shown: What a person reads.
    """

    run_dir: Path
    machine: Machine | None
    changes: Mapping[str, Any]
    shown: PlanSummary

    def summary(self) -> PlanSummary:
        """What a person reads of it."""
        return self.shown


def plan_move(
    store: RunStore,
    machine: Machine | None,
    changes: Mapping[str, Any],
    available: Sequence[Device] | None = None,
    *,
    accept_code: bool = False,
) -> MovePlan:
    """Plans to resume a run on a machine; None: here, where the run is on another one.

    Args:
        store: The run here.
        machine: Where it will train.
        changes: As `core.resume.planner.plan_resume` takes them.
        available: This computer's devices; None looks.
        accept_code: The person agrees that the run's own code is sent and run there.

    Raises:
        RunBusyError: It trains, here or there.
        UsageError: It was continued in both places, or cannot be resumed so.
        RankdeckError: A machine cannot be reached, or refuses.
    """
    source = machine_of(store)
    config = store.config()
    code = outside_code(config)
    accepted = code is None or accept_code or code.is_known
    if source is not None:
        wanted = dict(changes) if machine == source else _without_data(moved_changes(store, changes))
        devices = None if machine == source else _devices_of(machine, available)
        summary = _plan_at(source, store, wanted, devices, accept_code=accepted)
    else:
        assert machine is not None, "a run that is here and stays here needs no move"
        with serving(machine) as session:
            check_not_continued(session, store)
            look = look_through(session)
        summary = plan_resume(
            str(store.dir),
            store.dir.parent,
            _without_data(moved_changes(store, changes), THERE),
            available=look.devices,
            platform=look.platform,
            accept_code=accepted,
            elsewhere=True,
        ).summary()
    lines = (*summary.lines[:1], _where_line(summary, machine, source), *summary.lines[1:])
    summary = dataclasses.replace(summary, lines=lines, code_accepted=accepted and summary.code_accepted)
    return MovePlan(store.dir, machine, dict(changes), summary)


def _devices_of(machine: Machine | None, available: Sequence[Device] | None) -> tuple[Sequence[Device], Platform]:
    if machine is not None:
        look = look_at(machine)
        return look.devices, look.platform
    if available is None:
        with DeviceMonitor() as monitor:
            available = monitor.devices()
    return available, this_platform()


def _plan_at(
    source: Machine,
    store: RunStore,
    changes: Mapping[str, Any],
    devices: tuple[Sequence[Device], Platform] | None,
    *,
    accept_code: bool,
) -> PlanSummary:
    """Asks the machine that a run is on."""
    remote = read_remote(store.dir)
    assert remote is not None
    question = {"op": "plan", "run_dir": remote.run_dir, "changes": dict(changes), "accept_code": accept_code}
    if devices is not None:
        listed = [dataclasses.asdict(device) for device in devices[0]]
        question |= {"devices": listed, "platform": dataclasses.asdict(devices[1])}
    with serving(source) as session:
        return session.ask(question, Planned, START_LIMIT_S).plan


def _without_data(changes: Mapping[str, Any], beginning: str = "") -> dict[str, Any]:
    """The changes without data that is looked for only where the run will train; all of it, or with this beginning."""
    path = changes.get("dataset_file")
    drops = path is not None and str(path).strip().startswith(beginning)
    return {name: value for name, value in changes.items() if not (drops and name == "dataset_file")}


def _where_line(summary: PlanSummary, machine: Machine | None, source: Machine | None) -> str:
    """Where it will train, and what has to be brought there first."""
    name = "this computer" if machine is None else machine.name
    if source is not None and machine == source:
        return f"It continues on {name}, where it is."
    size = f" ({byte_size(summary.checkpoint_bytes)})"
    checkpoint = "" if summary.checkpoint is None else f"checkpoint {summary.checkpoint}{size}"
    fetched = f" Fetched from {source.name} first: {checkpoint}." if source is not None and checkpoint else ""
    if machine is None:
        return f"It continues on {name}.{fetched}"
    parts = ", ".join(part for part in (checkpoint, "settings, code and data") if part)
    return f"It continues on {name}.{fetched} Sent to {name}, unless it is there already: {parts}."
