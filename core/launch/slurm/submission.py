"""Submitted runs: the batch file, the job's log and its number, in a folder of the run's folder.

A job is a new run, or one that continues: on each node the GPUs that Slurm gives, or CPU devices.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from core.config.run_config import RunConfig
from core.data.dataset import check_size, identify
from core.errors import PreflightError, RunBusyError, StateFileError, UsageError
from core.files.atomic import explained, read_text, write_atomic
from core.held_files import read_utf8
from core.launch.command_line import to_command_line
from core.launch.nodes.key import make_key
from core.launch.slurm.batch_file import FOLDER, BatchJob, SlurmRequest, batch_file
from core.launch.slurm.jobs import cancel, look, submit
from core.parsing import ParseError, parse_json
from core.paths import SDK_FOLDER
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe
from core.recipes.outside_code import OutsideCodeError, known_batch_file
from core.records import RecordError, read_record
from core.run_folder.store import RunStore, new_run_id
from core.training_python import training_python

NUMBER_FILE: Final = "job.json"
BATCH_FILE: Final = "job.sbatch"
LOG: Final = "job.log"
_MAX_BATCH_BYTES: Final = 1 << 20
# A number of Slurm's: anything else, on the command line of scancel, could be an option.
_NUMBER: Final = re.compile(r"\d{1,18}(?:[_+.]\w{1,18})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Submission:
    """A run's job.

    Attributes:
        number: The job's, in Slurm.
        name: The run's.
        submitted: When, in seconds since 1970.
    """

    number: str
    name: str
    submitted: float


def log_of(run_dir: Path) -> Path:
    return run_dir / FOLDER / LOG


def batch_file_of(run_dir: Path) -> Path:
    return run_dir / FOLDER / BATCH_FILE


def submit_new_run(
    config: RunConfig, recipe: Recipe, runs_dir: Path, slurm: SlurmRequest, cpu_devices: Sequence[str] = ()
) -> tuple[Path, Submission]:
    """Submits a new run; returns its folder, and its job.

    Args:
        config: Its settings; devices and nodes are not taken from it.
        recipe: Its recipe.
        runs_dir: A folder of runs that all nodes see.
        slurm: What is asked for.
        cpu_devices: Those of each node, where it trains on no GPUs.

    Raises:
        UsageError: The dataset is not here, the recipe trains on one machine only, or the request cannot be used.
        PreflightError: Slurm refuses it; nothing is left of it.
    """
    check_size(identify(config.dataset_file, config.data_files), config.seq_len)
    run_dir = runs_dir.absolute() / new_run_id(config.recipe)
    train = to_command_line(config.replace(devices=("auto",), nodes=None), recipe)[2:]
    return run_dir, _submit(run_dir, recipe, slurm, cpu_devices, train=train)


def submit_resume(
    store: RunStore, changes: Sequence[str], slurm: SlurmRequest, cpu_devices: Sequence[str] = ()
) -> Submission:
    """Submits a run that there is; its job continues it, however often Slurm starts that.

    Args:
        store: The run.
        changes: Flags of `rankdeck resume`.
        slurm: What is asked for.
        cpu_devices: As in `submit_new_run`.

    Raises:
        RunBusyError: It trains, or its job has not ended.
        RankdeckError: As `submit_new_run`.
    """
    _check_not_submitted(store.dir)
    if store.state().is_live:
        raise RunBusyError(f"{store.dir.name} is running.", "Stop it first.")
    return _submit(store.dir.absolute(), get_recipe(store.config().recipe), slurm, cpu_devices, resume=changes)


def _submit(
    run_dir: Path,
    recipe: Recipe,
    slurm: SlurmRequest,
    cpu_devices: Sequence[str],
    *,
    train: Sequence[str] = (),
    resume: Sequence[str] = (),
) -> Submission:
    if slurm.max_nodes > 1 and recipe.self_contained:
        raise UsageError(
            f"{recipe.title} cannot train on several nodes.", "Ask for one node.", title="One node is all it can use"
        )
    job = BatchJob(
        name=run_dir.name,
        python=str(training_python().executable),
        python_path=str(SDK_FOLDER) if (SDK_FOLDER / "rankdeck").is_dir() else "",
        train=train,
        devices=cpu_devices,
        run_dir=str(run_dir),
        slurm=slurm.check(),
        log=str(log_of(run_dir)),
        resume=resume,
    )
    if slurm.max_nodes > 1:
        make_key()  # all nodes read it from the home folder that they share
    return _submit_file(job, run_dir)


def _submit_file(job: BatchJob, run_dir: Path) -> Submission:
    """Writes a run's batch file and submits it; where Slurm refuses it, all is as it was before.

    Raises:
        PreflightError: Slurm refuses it, or the folder cannot be written.
    """
    folder = run_dir / FOLDER
    file = folder / BATCH_FILE
    before = read_utf8(file) if file.exists() else None
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        text = batch_file(job)
        write_atomic(file, text, mode=0o755)
        known_batch_file(text).remember()
        return _send(run_dir)
    except Exception:
        if before is not None:
            write_atomic(file, before, mode=0o755)
            raise
        file.unlink(missing_ok=True)
        for made in (folder, run_dir):
            if not any(made.iterdir()):
                made.rmdir()
        raise


def submit_again(run_dir: Path, *, accepted: bool = False) -> Submission:
    """Submits a run's batch file, which continues the run where there is one.

    Raises:
        RunBusyError: Its job has not ended.
        OutsideCodeError: It was not written on this machine, and the person has not accepted it.
        PreflightError: Slurm refuses it.
    """
    _check_not_submitted(run_dir)
    file = batch_file_of(run_dir)
    if not accepted and not known_batch_file(read_text(file, limit_bytes=_MAX_BATCH_BYTES)).is_known:
        raise OutsideCodeError(
            f"{file} was not written on this machine, and it is a program that the cluster's nodes would run.",
            "Say what the job is to have, such as its time limit: then a new file is written.",
            option=f"rankdeck resume {run_dir.name} --slurm --time 4:00:00",
        )
    return _send(run_dir)


def _check_not_submitted(run_dir: Path) -> None:
    made = read_submission(run_dir)
    job = None if made is None else look(made.number)
    if job is not None and not job.has_ended:
        step = f"Cancel the job first, or follow it: rankdeck slurm follow {run_dir.name}"
        raise RunBusyError(f"The run is submitted already. {job.text}", step)


def _send(run_dir: Path) -> Submission:
    """Submits the batch file, and notes the job's number."""
    made = Submission(submit(batch_file_of(run_dir)), run_dir.name, time.time())
    try:
        write_atomic(run_dir / FOLDER / NUMBER_FILE, json.dumps(asdict(made)) + "\n")
    except PreflightError:
        cancel(made.number)  # nothing would name the job, and it would train unseen
        raise
    return made


def read_submission(run_dir: Path) -> Submission | None:
    """A run's job; None where it was not submitted.

    Raises:
        StateFileError: The file is damaged.
    """
    path = run_dir / FOLDER / NUMBER_FILE
    try:
        values: Any = parse_json(read_utf8(path))
        made = read_record(Submission, values)
        if _NUMBER.fullmatch(made.number) is None:
            raise RecordError("is not the number of a job", "number")
        return made
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, ParseError, RecordError) as error:
        raise StateFileError(f"{path} cannot be read: {error}.", "squeue lists your jobs.") from None


def submissions(runs_dir: Path) -> list[tuple[Path, Submission]]:
    """The submitted runs in a folder, newest first; damaged ones are passed over."""
    found = []
    for path in runs_dir.glob(f"*/{FOLDER}/{NUMBER_FILE}"):
        try:
            made = read_submission(path.parent.parent)
        except StateFileError:
            continue
        if made is not None:
            found.append((path.parent.parent, made))
    return sorted(found, key=lambda item: item[1].submitted, reverse=True)
