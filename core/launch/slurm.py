"""Slurm: a batch file for a run, which resumes the run whenever it is started again, and its submission."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from core.config.run_config import RunConfig
from core.data.dataset import check_size, identify
from core.errors import PreflightError, UsageError
from core.files.atomic import explained, write_atomic
from core.launch.command_line import to_command_line
from core.paths import SDK_FOLDER
from core.program_search import find_program, run_hidden
from core.recipes.manifest import Recipe
from core.run_folder.store import new_run_id
from core.training_python import training_python

# So long before the time limit the run saves a checkpoint and stops.
SIGNAL_AHEAD_S: Final = 120
# In the run's folder.
BATCH_FILE: Final = "slurm/job.sbatch"
LOG: Final = "slurm/job.log"
_LIMIT_S: Final = 30.0  # for an answer of the cluster's controller


@dataclass(frozen=True, slots=True)
class SlurmRequest:
    """Resources that a job requests.

    Attributes:
        nodes: Machines.
        gpus_per_node: GPUs of each; 0: it trains on CPU devices.
        cpu_devices: CPU devices of each, where it trains on no GPUs.
        partition: Empty: the cluster's own.
        options: Further options of sbatch.
    """

    nodes: int = 1
    gpus_per_node: int = 0
    cpu_devices: int = 0
    partition: str = ""
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.nodes < 1 or (self.gpus_per_node < 1) == (self.cpu_devices < 1):
            raise UsageError(
                "--slurm needs to know what each node trains on.",
                "Give --gpus-per-node N, or --devices cpux2 for CPU devices, and a number of --nodes from 1.",
            )


def submit_run(config: RunConfig, recipe: Recipe, runs_dir: Path, asked: SlurmRequest) -> tuple[str, Path]:
    """Write a new run's batch file and submit it; return the job's number, and the run's folder.

    Args:
        config: Its settings; devices are not taken from it.
        recipe: Its recipe.
        runs_dir: A folder of runs that all nodes see.
        asked: The resources.

    Raises:
        UsageError: The dataset is not here, or the recipe trains on one machine only.
        PreflightError: There is no Slurm here, or it refuses the job; nothing is left of it.
    """
    if asked.nodes > 1 and recipe.self_contained:
        raise UsageError(
            f"{recipe.title} cannot train on several nodes.", "Ask for one node.", title="One node is all it can use"
        )
    check_size(identify(config.dataset_file, config.data_files), config.seq_len)
    run_dir = runs_dir.absolute() / new_run_id(config.recipe)
    file = run_dir / BATCH_FILE
    with explained(f"{file.parent} could not be made"):
        file.parent.mkdir(parents=True)
    try:
        train = to_command_line(config.replace(devices=("auto",)), recipe)[2:]
        write_atomic(file, batch_file(run_dir, train, asked), mode=0o755)
        return _submit(file), run_dir
    except Exception:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise


def batch_file(run_dir: PurePath, train: Sequence[str], asked: SlurmRequest) -> str:
    """Return a script for sbatch that starts or resumes a run; `train`: the flags of `rankdeck train`."""
    tasks = asked.gpus_per_node or asked.cpu_devices
    directives = [
        f"--job-name={run_dir.name}",
        f"--nodes={asked.nodes}",
        f"--ntasks-per-node={tasks}",
        *([f"--gres=gpu:{asked.gpus_per_node}"] if asked.gpus_per_node else []),
        *([f"--partition={asked.partition}"] if asked.partition else []),
        f"--output={str(run_dir / LOG).replace('%', '%%')}",  # % begins one of Slurm's patterns
        "--open-mode=append",
        "--requeue",
        f"--signal=B:TERM@{SIGNAL_AHEAD_S}",  # to this script alone: a rank would die of it
        *asked.options,
    ]
    devices = f" --devices {','.join(f'cpu:{number}' for number in range(tasks))}" if asked.cpu_devices else ""
    sdk = str(SDK_FOLDER) if (SDK_FOLDER / "rankdeck").is_dir() else ""
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"#SBATCH {shlex.quote(_one_line(line))}" for line in directives),
            f"# {SIGNAL_AHEAD_S} s before the time limit the run saves a checkpoint and stops.",
            "# Submit this file again to resume it; words after its name are flags of `rankdeck resume`.",
            *([f"export PYTHONPATH={shlex.quote(sdk)}"] if sdk else []),
            # Slurm counts GPUs by their place, and CUDA by their speed where it is not told otherwise.
            *(["export CUDA_DEVICE_ORDER=PCI_BUS_ID"] if asked.gpus_per_node else []),
            f"run={shlex.quote(str(run_dir))}",
            'if [ -e "$run/run.toml" ]; then',
            f'  set -- resume "$run" --yes{devices} "$@"',
            "else",
            f'  set -- train {shlex.join(train)}{devices} --run-dir "$run" "$@"',
            "fi",
            f"python={shlex.quote(str(training_python().executable))}",
            # srun does not take the number of processor cores from the job since Slurm 22.05.
            'srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --kill-on-bad-exit=1 "$python" -m rankdeck "$@" &',
            "job=$!",
            """trap '"$python" -m rankdeck stop "$run"' TERM""",
            'wait "$job"; code=$?',
            'while kill -0 "$job" 2>/dev/null; do wait "$job"; code=$?; done',  # the signal ends a wait
            "exit $code",
            "",
        ]
    )


def _one_line(text: str) -> str:
    """Return the text without what would end the line: a folder's name may hold anything, and the rest would be run."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _submit(file: Path) -> str:
    program = find_program("sbatch")
    if program is None:
        raise PreflightError(
            "There is no sbatch on this machine.",
            "Submit the job on a machine of the cluster from which jobs are submitted.",
            title="Slurm is not installed here",
        )
    try:
        done = run_hidden([program, "--parsable", str(file)], _LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PreflightError(
            f"sbatch did not answer ({error}).", "Try again.", title="Slurm does not answer"
        ) from error
    found = re.match(r"\d+", done.stdout.strip())  # "12", or "12;cluster"
    if done.returncode == 0 and found is not None:
        return found[0]
    lines = [re.sub(r"^\w+: (error: )?", "", line.strip()) for line in done.stderr.splitlines() if line.strip()]
    raise PreflightError(
        f"sbatch says: {' '.join(lines[-2:]) or f'exit code {done.returncode}'}",
        "Change what the job asks for. sinfo lists the partitions, their nodes and their time limits.",
        title="Slurm has refused the job",
    )
