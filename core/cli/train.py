"""`rankdeck train` and `rankdeck resume`: start a run's host, follow it, and report its outcome."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.cli.device_request import resolve_request
from core.cli.follow import Follower, StopLadder, exit_code, report_ending
from core.cli.interrupts import counted_interrupts
from core.cli.launched import LaunchedRun, check_arguments, launched_place, own_device, with_others
from core.cli.parser import parse
from core.cli.slurm import is_submitted, submit_train
from core.cli.terminal import Terminal
from core.client import resume_run, start_run
from core.config.arguments import join_arguments
from core.config.distributed import DistributedConfig
from core.config.layers import device_texts
from core.errors import DatasetError, UsageError
from core.launch.command_line import TrainRequest, request_from_arguments
from core.launch.preflight import Checked, check
from core.launch.resolved import ResolvedRun
from core.machine.devices.device import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import device_texts as texts_of
from core.machines.machine import check_not_there
from core.metrics.metrics_file import whole_bytes
from core.paths import default_runs_dir
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe
from core.recipes.outside_code import check_accepted
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import read_script
from core.resume.changes import STOPS
from core.resume.plan import ResumePlan
from core.resume.planner import CHANGEABLE, plan_resume
from core.run_folder.early_host import EarlyHost
from core.run_folder.store import RunStore

_PASSED_ON: Final = ("devices", "num_gpus", "mode", "run_dir", "runs_dir", "log_file", "steps", "machine", *STOPS)


def train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Start a new run; in the foreground unless it is to be detached, or by the processes of a launcher."""
    if is_submitted(arguments):
        return submit_train(arguments, terminal)
    place = launched_place()
    request = request_from_arguments(arguments)
    runs_dir = request.runs_dir or default_runs_dir()
    if arguments.machine is not None:
        # Here: a run on this computer needs none of it.
        from core.cli.elsewhere import start_on_machine

        _check_not_launched(place)
        return _follow(start_on_machine(arguments, request, terminal), arguments, terminal)
    check_not_there(request.config)
    if place is not None:
        check_arguments(place, arguments)
        device = own_device(place, request.config.devices, request.count, request.recipe)

        def begin(devices: Sequence[Device]) -> tuple[RunStore, int]:
            _check_recipe(place, request.recipe)
            named = replace(request, config=request.config.replace(devices=texts_of(devices)), count=None)
            store, checked = _start(named, runs_dir, arguments, terminal, with_others(devices))
            terminal.say(_headline(checked))
            return store, 0

        shared = request.run_dir.parent if request.run_dir else runs_dir
        return LaunchedRun(place, device, begin, terminal, arguments.json, shared).run()
    store, checked = _start(request, runs_dir, arguments, terminal)
    if not arguments.detach:
        terminal.say(f"Run {store.dir.name} in {store.dir}")
        terminal.say(_headline(checked))
    return _follow(store, arguments, terminal)


def _fit_note(run: ResolvedRun) -> str:
    """The reason that the run does not fit into memory, as far as it is known at once."""
    from core.measure.estimate.free import free_now  # here: other commands need none of it
    from core.measure.estimate.overview import fit_note

    if run.recipe.self_contained:
        return ""
    with DeviceMonitor() as monitor:
        return fit_note(run, free_now(monitor.sample(), None))


def _check_recipe(place: DistributedConfig, recipe: Recipe) -> None:
    """Refuse a user's own script on several machines, whose processes Rankdeck does not connect."""
    if place.num_nodes > 1 and recipe.self_contained:
        raise UsageError(
            f"{recipe.title} cannot train on several machines as a run.",
            "Start the script itself with torchrun on each machine, without Rankdeck.",
        )


def _check_not_launched(place: DistributedConfig | None) -> None:
    """Refuse another machine for a process that a launcher has given a place here."""
    if place is not None:
        raise UsageError(
            "This process was started by a launcher, so its rank is on this computer.",
            "Start the run on the other machine without the launcher.",
            option="leave out --machine, or torchrun",
        )


def _start(
    request: TrainRequest,
    runs_dir: Path,
    arguments: argparse.Namespace,
    terminal: Terminal,
    available: Sequence[Device] | None = None,
) -> tuple[RunStore, Checked]:
    with EarlyHost() as host:
        try:
            checked = check_request(request, runs_dir, available)
        except DatasetError as error:
            raise _named_elsewhere(error, request.config.dataset_file, arguments) from None
        for note in (checked.data, *checked.notes, _fit_note(checked.run)):
            if note:
                terminal.warn(note)
        return start_run(checked.run.config, runs_dir, request.run_dir, resolved=checked.run, host=host), checked


def _headline(checked: Checked) -> str:
    if checked.run.recipe.name == USER_SCRIPT:
        script = read_script(checked.run.config.options, checked.run.config.env)
        devices = ", ".join(device.uuid for device in checked.run.devices)
        return f"{script.name} with {script.python} in {script.folder}: {checked.run.mode} on {devices}"
    return f"{checked.run.recipe.title} on {checked.dataset.path}: {_plan_text(checked)}"


def _named_elsewhere(error: DatasetError, dataset: str, arguments: argparse.Namespace) -> DatasetError:
    """Return a clearer error if a config file from another machine names data that is not here.

    A run's run.toml contains the data's absolute path on the machine that created it.
    """
    is_here = "://" in dataset or os.path.exists(dataset)  # noqa: PTH110, a path may be one that Path refuses
    if is_here or arguments.config is None or arguments.dataset_file is not None:
        return error
    return DatasetError(
        f"{arguments.config} trains on {dataset}, which is not on this machine.",
        "Give its path on this machine: --dataset-file PATH",
        title=error.title,
    )


def check_request(request: TrainRequest, runs_dir: Path, available: Sequence[Device] | None = None) -> Checked:
    """Check a request against this machine; changes nothing. `available`: see `plan_resume`."""
    run, notes = resolve_request(request, available)
    checked = check(run, runs_dir, request.run_dir)
    return replace(checked, notes=(*notes, *checked.notes))


def resume(arguments: argparse.Namespace, terminal: Terminal) -> int:
    changes = {name: getattr(arguments, name) for name in CHANGEABLE if getattr(arguments, name) is not None}
    if arguments.checkpoint is not None:
        changes["checkpoint"] = arguments.checkpoint
    runs_dir = Path(arguments.runs_dir).absolute() if arguments.runs_dir else default_runs_dir()
    from core.cli.elsewhere import fetched, resume_on_machine, shows_move  # here: to start a run needs none of it
    from core.machines.moving import now_here

    place = launched_place()
    if arguments.machine is not None:
        _check_not_launched(place)
        resumed = resume_on_machine(arguments, runs_dir, changes, terminal)
        return 0 if resumed is None else _follow(resumed[0], arguments, terminal, resumed[1])
    if place is not None:
        check_arguments(place, arguments)
        asked = device_texts(changes["devices"]) if "devices" in changes else ("auto",)
        device = own_device(place, asked, None, None)

        def begin(devices: Sequence[Device]) -> tuple[RunStore, int]:
            mine = fetched(arguments, runs_dir, {**changes, "devices": ",".join(texts_of(devices))}, terminal)
            plan = _plan(mine, runs_dir, arguments, terminal, with_others(devices))
            _check_recipe(place, get_recipe(plan.config.recipe))
            store, offset = _resume(plan)
            now_here(store)
            return store, offset

        named = Path(arguments.path).absolute()
        shared = named.parent if named.is_dir() else runs_dir
        return LaunchedRun(place, device, begin, terminal, arguments.json, shared).run()
    if arguments.dry_run and shows_move(arguments, runs_dir, changes, terminal):
        return 0
    plan = _plan(fetched(arguments, runs_dir, changes, terminal), runs_dir, arguments, terminal)
    if arguments.dry_run:
        return 0
    store, offset = _resume(plan)
    now_here(store)
    return _follow(store, arguments, terminal, offset)


def _plan(
    changes: dict[str, Any],
    runs_dir: Path,
    arguments: argparse.Namespace,
    terminal: Terminal,
    available: Sequence[Device] | None = None,
) -> ResumePlan:
    """Show the plan, and have its code accepted unless the plan is all that is asked for."""
    plan = plan_resume(arguments.path, runs_dir, changes, available=available, accept_code=arguments.trust_recipe)
    from core.cli.elsewhere import agrees, say_lines  # here: to start a run needs none of it

    say_lines(plan.lines(), arguments, terminal)
    if plan.code is not None and not plan.code_accepted and not arguments.dry_run:
        check_accepted(plan.code, agrees(plan.code.in_run_folder, arguments, terminal))
        plan = plan_resume(arguments.path, runs_dir, changes, available=available, accept_code=True)
    return plan


def _resume(plan: ResumePlan) -> tuple[RunStore, int]:
    """Resume a run; also return how much of its metrics is not new."""
    offset = 0 if plan.run_dir is None else whole_bytes(RunStore(plan.run_dir).metrics)
    return resume_run(plan), offset


def _follow(store: RunStore, arguments: argparse.Namespace, terminal: Terminal, offset: int = 0) -> int:
    """Follow the run to its end, or print its id where it is detached."""
    if arguments.detach:
        terminal.data(store.dir.name)
        return 0
    follower = Follower(store, terminal, arguments.json, offset)
    with counted_interrupts() as interrupts:
        ending = follower.until_end(interrupts, StopLadder(store, terminal).climb)
    report_ending(ending, store, terminal)
    return exit_code(ending)


def _plan_text(checked: Checked) -> str:
    names = ", ".join(device.name if device.kind == "cuda" else device.uuid for device in checked.run.devices)
    known = checked.steps_per_epoch
    steps = "" if known is None else f", about {known:,} step{'' if known == 1 else 's'} per epoch"
    return f"{checked.run.mode} on {names}; global batch {checked.run.batch}{steps}"


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    return train(parse(train_argv(arguments, Path.cwd())), terminal)


def train_argv(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Translate `rankdeck run` into the arguments of `rankdeck train`; raises `UsageError` without a script."""
    rest = list(arguments.script_argv)
    if arguments.module is None:
        if not rest or rest[0] == "--":
            raise UsageError(
                "No script was given.", "Give one: rankdeck run train.py, or rankdeck run -m package.module"
            )
        what, rest = ("script", rest[0]), rest[1:]
    else:
        what = ("module", arguments.module)
        rest = rest[1:] if rest[:1] == ["--"] else rest
    options = {
        what[0]: what[1],
        "arguments": join_arguments(rest),
        "python": arguments.python or "",
        "working_directory": arguments.cwd or str(folder),
        "charts": ", ".join(arguments.map or []),
        "leave_out_torchrun_variables": "true" if arguments.no_torchrun else "false",
        "stop_signal": arguments.stop_signal or "",
        "stop_deadline_s": arguments.stop_deadline_s or "",
    }
    argv = ["train", "--recipe", USER_SCRIPT]
    for name in _PASSED_ON:
        if getattr(arguments, name) is not None:
            argv.append(f"--{name.replace('_', '-')}={getattr(arguments, name)}")
    if arguments.restarts is not None:
        argv.append(f"--max-restarts={arguments.restarts}")
    argv += [f"--env={item}" for item in arguments.env or []]
    argv += [flag for flag in ("--json", "--detach") if getattr(arguments, flag[2:])]
    for name, value in options.items():
        if value:
            argv += ["--set", f"{name}={value}"]
    return argv
