"""`rankdeck train --slurm` and `rankdeck slurm`: a run that is submitted, and its job."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.cli.interrupts import Interrupts, counted_interrupts
from core.cli.machine_flags import names_a_job, slurm_request
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.config.layers import device_texts
from core.errors import PreflightError, RankdeckError, UsageError, with_option
from core.launch.command_line import change_flags, request_from_arguments
from core.launch.slurm.jobs import JobState, cancel, look
from core.launch.slurm.submission import (
    Submission,
    batch_file_of,
    log_of,
    read_submission,
    submissions,
    submit_again,
    submit_new_run,
    submit_resume,
)
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import resolve_devices
from core.metrics.metrics_file import MetricsTail
from core.paths import default_runs_dir
from core.recipes.outside_code import check_accepted, outside_code
from core.run_folder.store import find_run

_READ_S: Final = 0.25
_LOOK_S: Final = 3.0  # between two questions to the controller, which many users share
_SETTLE_S: Final = 4.0  # a job that Slurm queues again has ended for a moment
_ANSWER_S: Final = 300.0  # so long a controller may be silent while a job is followed


def submit_train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Submits a new run and follows its job.

    Raises:
        RankdeckError: The run cannot be submitted; nothing is left of it.
    """
    request = request_from_arguments(arguments)
    count = None if request.count is None else request.count.number
    gpus, cpus = _devices_of_node(arguments.gpus_per_node, request.config.devices, count)
    asked = slurm_request(arguments, request.config.nodes, gpus, len(cpus))
    runs_dir = request.runs_dir or default_runs_dir()
    run_dir, made = submit_new_run(request.config, request.recipe, runs_dir, asked, cpus)
    if not arguments.detach:
        terminal.say(f"The run's folder will be {run_dir}")
    return _submitted(run_dir, made, arguments, terminal)


def submit_resumed(
    arguments: argparse.Namespace, changes: Mapping[str, Any], nodes: str | None, terminal: Terminal
) -> int:
    """Submits a run that there is and follows its job; without a word on the job, the one of before again.

    Args:
        arguments: Those of `rankdeck resume`.
        changes: What is to change, as `core.resume.planner.plan_resume` takes it.
        nodes: As `RunConfig.nodes` has it.
        terminal: Shows the job.

    Raises:
        RankdeckError: The run cannot be submitted; it is as it was.
    """
    store = find_run(chosen_runs_dir(arguments), arguments.path)
    accepted = arguments.yes or arguments.trust_recipe
    if (code := outside_code(store.config())) is not None:
        check_accepted(code, arguments.trust_recipe or code.is_known or (arguments.yes and not code.in_run_folder))
        code.remember()  # the job itself cannot ask
    if store.state().state == "finished" and not {"steps", "epochs"} & changes.keys():
        step = f"Say for how long: rankdeck resume {arguments.path} --slurm --steps N"
        raise UsageError(f"{store.dir.name} has finished.", step, title="Nothing is left to train")
    flags = change_flags({name: value for name, value in changes.items() if name not in ("devices", "nodes")})
    if batch_file_of(store.dir).exists() and not flags and not names_a_job(arguments):
        return _submitted(store.dir, submit_again(store.dir, accepted=accepted), arguments, terminal)
    trust = ["--trust-recipe"] if arguments.trust_recipe else []
    gpus, cpus = _devices_of_node(arguments.gpus_per_node, device_texts(changes.get("devices", "auto")))
    asked = slurm_request(arguments, nodes, gpus, len(cpus))
    return _submitted(store.dir, submit_resume(store, [*flags, *trust], asked, cpus), arguments, terminal)


def _submitted(run_dir: Path, made: Submission, arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.detach:
        terminal.data(made.name)
        return 0
    terminal.say(f"Submitted as job {made.number}: {batch_file_of(run_dir)}")
    return _follow(run_dir, made, terminal)


def _devices_of_node(gpus: int | None, asked: Sequence[str], count: int | None = None) -> tuple[int, tuple[str, ...]]:
    """How many GPUs each node is to have, or which CPU devices."""
    named: tuple[str, ...] = ()
    if tuple(asked) != ("auto",):
        with DeviceMonitor() as monitor:
            devices = resolve_devices(tuple(asked), monitor.devices())
        if any(device.kind == "cuda" for device in devices):
            raise UsageError(
                f"--slurm and --devices {','.join(asked)} are both given, but Slurm chooses the GPUs.",
                "Say how many it is to give: --gpus-per-node N",
            )
        named = tuple(device.uuid for device in devices)
    elif gpus is None:
        gpus = count
    if gpus is None and not named:
        raise UsageError(
            "--slurm needs to know what each node trains on.",
            "Give --gpus-per-node N, or --devices cpux2 for CPU devices.",
        )
    if gpus is not None and (named or gpus < 1):
        raise UsageError(
            f"--gpus-per-node is {gpus}, and --devices is {','.join(asked)}.",
            "Give a number of GPUs from 1, or CPU devices, and not both.",
        )
    return gpus or 0, named


def slurm(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """`rankdeck slurm list | follow | cancel | submit`."""
    runs_dir = chosen_runs_dir(arguments)
    if arguments.action == "list":
        return _list(runs_dir, arguments.json, terminal)
    if arguments.run is None:
        raise UsageError(
            f"rankdeck slurm {arguments.action} needs a run.",
            f"Name one of rankdeck slurm list: rankdeck slurm {arguments.action} RUN",
        )
    run_dir, made = find_submission(runs_dir, arguments.run)
    if arguments.action == "cancel":
        cancel(made.number)
        terminal.say(f"Asked Slurm to cancel job {made.number}.")
        return 0
    if arguments.action == "submit":
        made = submit_again(run_dir)
        terminal.say(f"Submitted as job {made.number}.")
    return _follow(run_dir, made, terminal)


def find_submission(runs_dir: Path, text: str) -> tuple[Path, Submission]:
    """The submitted run that a name, the start of one, a folder or a job's number means.

    Raises:
        UsageError: None does, or several do.
    """
    folder = Path(text).absolute()
    made = read_submission(folder) if folder.is_dir() else None
    if made is not None:
        return folder, made
    everything = submissions(runs_dir)
    found = [item for item in everything if text in (item[1].name, item[1].number)]
    found = found or [item for item in everything if item[1].name.startswith(text)]
    if len(found) == 1:
        return found[0]
    what = "No submitted run" if not found else f"{len(found)} submitted runs"
    raise UsageError(
        f"{what} in {runs_dir} match{'es' if not found else ''} {text!r:.100}.",
        "List them: rankdeck slurm list",
        title="That run was not submitted" if not found else "Several runs match that name",
    )


def _list(runs_dir: Path, as_json: bool, terminal: Terminal) -> int:
    rows = [(made, look(made.number)) for _, made in submissions(runs_dir)]
    if as_json:
        terminal.json(
            [{"run": made.name, "job": made.number, "state": job.state if job else None} for made, job in rows]
        )
    elif not rows:
        terminal.say(f"No run in {runs_dir} was submitted to Slurm.")
    else:
        terminal.table(
            ("run", "job", "state"),
            [(made.name, made.number, job.text if job else "no longer known to Slurm") for made, job in rows],
        )
    return 0


def _follow(run_dir: Path, made: Submission, terminal: Terminal) -> int:
    """Shows a job's states and log until it has ended; Ctrl+C leaves it."""
    with counted_interrupts() as interrupts:
        job = _until_end(run_dir, made, interrupts, terminal)
    if job is None:
        terminal.say(f"Job {made.number} continues. Follow it again: rankdeck slurm follow {made.name}")
        terminal.say(f"Cancel it: rankdeck slurm cancel {made.name}")
        return 0
    if job.state == "COMPLETED":
        return 0
    step = with_option(job.next_step, f"rankdeck slurm submit {made.name}") if job.state != "FAILED" else job.next_step
    terminal.error(RankdeckError(f"{job.text} Its log: {log_of(run_dir)}", step, title="The job did not complete"))
    return job.exit_code or RankdeckError.exit_code


def _until_end(run_dir: Path, made: Submission, interrupts: Interrupts, terminal: Terminal) -> JobState | None:
    """The job's end; None where the user has left it.

    Raises:
        PreflightError: Slurm does not answer, for minutes, or no longer knows the job.
    """
    log, shown, look_s = MetricsTail(log_of(run_dir)), "", 0.0
    ended_s: float | None = None
    while not interrupts.count:
        for line in log.read():
            terminal.say(line.rpartition(b"\r")[2].decode("utf-8", errors="replace"))
        if time.monotonic() < look_s:
            time.sleep(_READ_S)
            continue
        job, look_s = _job(made, terminal), time.monotonic() + _LOOK_S
        if job.text != shown:
            shown = job.text
            terminal.say(shown)
        if not job.has_ended:
            ended_s = None
            continue
        ended_s = ended_s or time.monotonic()
        if job.state == "COMPLETED" or time.monotonic() - ended_s > _SETTLE_S:
            return job
    return None


def _job(made: Submission, terminal: Terminal) -> JobState:
    deadline = time.monotonic() + _ANSWER_S
    while True:
        try:
            job = look(made.number)
            break
        except PreflightError as error:
            if time.monotonic() > deadline:
                raise
            terminal.progress(error.cause)
            time.sleep(_LOOK_S)
    if job is None:
        raise PreflightError(
            f"Slurm no longer knows job {made.number}: it ended minutes ago, or longer.",
            f"Look at the run itself: rankdeck show {made.name}",
            title="The job is gone",
        )
    return job
