"""A new run as a job: its settings, on each node the GPUs that Slurm gives or CPU devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.config.run_config import RunConfig
from core.data.dataset import check_size, identify
from core.errors import UsageError
from core.launch.command_line import to_command_line
from core.launch.nodes.key import make_key
from core.launch.slurm.batch_file import BatchJob, SlurmRequest
from core.launch.slurm.submission import Submission, log_of, submit_run
from core.paths import SDK_FOLDER
from core.recipes.manifest import Recipe
from core.run_folder.store import new_run_id
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
    check_size(identify(config.dataset_file), config.seq_len)
    if slurm.max_nodes > 1 and recipe.self_contained:
        raise UsageError(
            f"{recipe.title} cannot train on several nodes.", "Ask for one node.", title="One node is all it can use"
        )
    run_dir = runs_dir.absolute() / new_run_id(config.recipe)
    job = BatchJob(
        name=run_dir.name,
        python=str(training_python().executable),
        python_path=str(SDK_FOLDER) if (SDK_FOLDER / "rankdeck").is_dir() else "",
        train=to_command_line(config.replace(devices=("auto",), nodes=None), recipe)[2:],
        devices=cpu_devices,
        run_dir=str(run_dir),
        slurm=slurm.check(),
        log=str(log_of(run_dir)),
    )
    if slurm.max_nodes > 1:
        make_key()  # all nodes read it from the home folder that they share
    return run_dir, submit_run(job, run_dir)
