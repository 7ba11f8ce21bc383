"""A run as a job, a new one or one that continues: on each node the GPUs that Slurm gives, or CPU devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.config.run_config import RunConfig
from core.data.dataset import check_size, identify
from core.errors import RunBusyError, UsageError
from core.launch.command_line import to_command_line
from core.launch.nodes.key import make_key
from core.launch.slurm.batch_file import BatchJob, SlurmRequest
from core.launch.slurm.commands import look
from core.launch.slurm.submission import Submission, log_of, read_submission, submit_run
from core.paths import SDK_FOLDER
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore, new_run_id
from core.training_python import training_python


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
    made = read_submission(store.dir)
    job = None if made is None else look(made.number)
    if job is not None and not job.has_ended:
        raise RunBusyError(f"The run is submitted already. {job.text}", "Cancel the job first, or wait for its end.")
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
    return submit_run(job, run_dir)
