"""`rankdeck train` and `rankdeck resume`: start a run's host, follow it, and report how it ended."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from core.cli.device_request import with_ddp_spawn, with_devices
from core.cli.follow import INTERRUPTED_TWICE, Ending, Follower, StopLadder
from core.cli.interrupts import counted_interrupts
from core.cli.terminal import Terminal
from core.client import resume_run, start_run
from core.errors import DatasetError, RankdeckError
from core.formatting import duration, number
from core.launch.command_line import TrainRequest, request_from_arguments
from core.launch.preflight import Checked, check
from core.launch.resolved import resolve
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.metrics.metrics_file import whole_bytes
from core.paths import default_runs_dir
from core.recipes.outside_code import OutsideCode, check_accepted
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import read_script
from core.resume.planner import CHANGEABLE, plan_resume
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from core.run_folder.waiting_host import WaitingHost

RUN_FAILED: Final = 1


def train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Starts a new run; in the foreground unless it is to be detached."""
    request = request_from_arguments(arguments)
    runs_dir = request.runs_dir or default_runs_dir()
    with WaitingHost() as host:
        try:
            checked = check_request(request, runs_dir)
        except DatasetError as error:
            raise _named_elsewhere(error, request.config.dataset_file, arguments) from None
        for note in checked.notes:
            terminal.warn(note)
        store = start_run(checked.run.config, runs_dir, request.run_dir, host)
    if arguments.detach:
        terminal.data(store.dir.name)
        return 0
    terminal.say(f"Run {store.dir.name} in {store.dir}")
    terminal.say(_headline(checked))
    return _foreground(store, terminal, arguments.json)


def _headline(checked: Checked) -> str:
    if checked.run.recipe.name == USER_SCRIPT:
        script = read_script(checked.run.config.options, checked.run.config.env)
        devices = ", ".join(device.uuid for device in checked.run.devices)
        return f"{script.name} with {script.python} in {script.folder}: {checked.run.mode} on {devices}"
    return f"{checked.run.recipe.title} on {checked.dataset.path}: {_plan_text(checked)}"


def _named_elsewhere(error: DatasetError, dataset: str, arguments: argparse.Namespace) -> DatasetError:
    """`error`, or a clearer one if a config file from another machine names data that is not here.

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


def check_request(request: TrainRequest, runs_dir: Path) -> Checked:
    """Checks a request against this machine; changes nothing."""
    platform = this_platform()
    with DeviceMonitor() as monitor:
        available = monitor.devices()
        cpus = monitor.cpu_slots()
    config, notes = with_devices(request, available, cpus, platform)
    request, more = with_ddp_spawn(replace(request, config=config), available, os.environ)
    run = resolve(request.config, request.recipe, available, platform)
    checked = check(run, runs_dir, request.run_dir)
    return replace(checked, notes=(*notes, *more, *checked.notes))


def resume(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Shows the resume plan, then resumes."""
    changes = {name: getattr(arguments, name) for name in CHANGEABLE if getattr(arguments, name) is not None}
    if arguments.checkpoint is not None:
        changes["checkpoint"] = arguments.checkpoint
    runs_dir = Path(arguments.runs_dir).absolute() if arguments.runs_dir else default_runs_dir()
    trusted = arguments.trust_recipe
    plan = plan_resume(arguments.path, runs_dir, changes, accept_code=trusted)
    for line in plan.lines():
        (terminal.warn if arguments.detach or arguments.json else terminal.say)(line)
    if arguments.dry_run:
        return 0
    if plan.code is not None and not plan.code_accepted:
        check_accepted(plan.code, _agrees(plan.code, arguments, terminal))
        plan = plan_resume(arguments.path, runs_dir, changes, accept_code=True)
    offset = 0 if plan.run_dir is None else whole_bytes(RunStore(plan.run_dir).metrics)
    store = resume_run(plan)
    if arguments.detach:
        terminal.data(store.dir.name)
        return 0
    return _foreground(store, terminal, arguments.json, offset)


def _agrees(code: OutsideCode, arguments: argparse.Namespace, terminal: Terminal) -> bool:
    """Whether the user agrees to run the code. Code inside a run's folder needs the flag, not a keystroke."""
    if code.in_run_folder:
        return False
    return bool(arguments.yes) or terminal.ask("It was never started on this machine. Run this code? [y/N] ")


def exit_code(ending: Ending) -> int:
    """What the command returns for how the run ended."""
    state = ending.state
    if ending.interrupts > 1:
        return INTERRUPTED_TWICE
    if state.state in ("finished", "stopped"):
        return state.exit_code or 0  # stopped at once from another terminal is not 0: not everything is committed
    return state.exit_code or RUN_FAILED


def report_ending(ending: Ending, store: RunStore, terminal: Terminal) -> None:
    """Reports how a run ended: its figures and the model's path, or its error."""
    state = ending.state
    if state.state in ("finished", "stopped"):
        figures = _figures(ending, store)
        at = f" at step {state.step}" if state.step or figures else ""
        at += f" ({state.goal})" if state.goal else ""
        took = duration(state.updated - state.created)
        terminal.say(f"{state.state.capitalize()}{at} after {took}{f': {figures}' if figures else '.'}")
        if state.stopped_by:
            terminal.say(f"Stopped early: {state.stopped_by}")
        if state.recipe == USER_SCRIPT and not at:
            terminal.say("The script printed no step or loss that Rankdeck recognises.")
            terminal.say("To chart its numbers, name them with --map NAME=CHART or call rankdeck.log in the script.")
        if state.error is not None and state.exit_code == RUN_FAILED:
            terminal.error(run_error(state, store))
            return
        if store.model.is_file():
            terminal.say(f"Model: {store.model}")
        if state.state == "stopped":
            again = "Run the script again" if state.recipe == USER_SCRIPT else "Resume it"
            terminal.say(f"{again}: rankdeck resume {store.dir.name}")
    elif state.error is not None:
        terminal.error(run_error(state, store))


def _figures(ending: Ending, store: RunStore) -> str:
    """The last value of the run's main metric and of its evaluation: "loss 1.83, validation loss 1.97"."""
    progress, state = ending.progress, ending.state
    metric = progress.metric
    value, evaluated = progress.value, progress.evaluated
    if value is None:  # nothing was trained since the run was resumed
        value = metric.last(state.loss, metric.read(state.loss, store.columns, store.metrics))
    if evaluated is None and "loss" in metric.names:
        evaluated = state.val_loss
    parts = {metric.title: value, metric.eval_title: evaluated}
    return ", ".join(f"{title} {number(found, 4)}" for title, found in parts.items() if found is not None)


def run_error(state: RunState, store: RunStore) -> RankdeckError:
    """A failed run's error."""
    error = state.error or {}
    return RankdeckError(
        error.get("cause") or "The run ended without reporting a reason.",
        error.get("next_step") or f"Read {store.logs / 'host.log'}.",
        title=error.get("title") or None,
    )


def _foreground(store: RunStore, terminal: Terminal, as_json: bool, offset: int = 0) -> int:
    follower = Follower(store, terminal, as_json, offset)
    with counted_interrupts() as interrupts:
        ending = follower.until_end(interrupts, StopLadder(store, terminal).climb)
    report_ending(ending, store, terminal)
    return exit_code(ending)


def _plan_text(checked: Checked) -> str:
    names = ", ".join(device.name if device.kind == "cuda" else device.uuid for device in checked.run.devices)
    steps = f"about {checked.steps_per_epoch:,} steps per epoch"
    return f"{checked.run.mode} on {names}; global batch {checked.run.batch}, {steps}"
