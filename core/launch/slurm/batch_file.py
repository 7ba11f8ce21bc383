"""Batch files for sbatch: one run, on one or several nodes, that continues after a time limit or a preemption. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.errors import UsageError
from core.launch.nodes.job import AUTO_NIC

SIGNAL_AHEAD_S: Final = 120  # so long before the time limit the run saves a checkpoint and stops
FOLDER: Final = "slurm"  # in the run's folder: the batch file, the job's log, and what was submitted
_FIRST_PORT: Final = 20_000
_PORT_BLOCKS: Final = 2_500  # five ports for each job, below the range that systems give out by themselves (32768)
_ADDRESS: Final = (
    "import psutil, socket, sys; print(next(entry.address for entry in psutil.net_if_addrs().get(sys.argv[1], ()) "
    "if entry.family == socket.AF_INET))"
)


@dataclass(frozen=True, slots=True)
class SlurmRequest:
    """Resources and options that a job requests from Slurm.

    Attributes:
        min_nodes, max_nodes: How many nodes.
        nic: The network interface of a run on several nodes, of the same name on all of them; or `AUTO_NIC`: that of
            the address by which Slurm knows a node.
        gpus_per_node: GPUs on each; 0: it trains on CPU devices.
        cpus_per_task: CPU devices, each of which needs a core; 0: Slurm's own number.
        partition, time_limit, account: As sbatch takes them; empty: the cluster's own.
        options: Further options of sbatch.
    """

    min_nodes: int = 1
    max_nodes: int = 1
    nic: str = AUTO_NIC
    gpus_per_node: int = 0
    cpus_per_task: int = 0
    partition: str = ""
    time_limit: str = ""
    account: str = ""
    options: tuple[str, ...] = ()

    def check(self) -> SlurmRequest:
        """This request, if it can be a batch file.

        Raises:
            UsageError: Says what cannot.
        """
        texts = (self.nic, self.partition, self.time_limit, self.account, *self.options)
        if any(not text.isprintable() for text in texts):
            raise UsageError("An option for Slurm holds a line break or a control character.", "Correct it.")
        for option in self.options:
            if not option.startswith("-"):
                raise UsageError(
                    f"{option!r} is not an option of sbatch.", "Write it as for sbatch: --sbatch=--mem=64G"
                )
        return self


@dataclass(frozen=True, slots=True)
class BatchJob:
    """The launch that a batch file describes.

    Attributes:
        name: The job's.
        python: The interpreter, at the same path on all nodes.
        python_path: Folders for `PYTHONPATH`, where `rankdeck` is not installed for it.
        train: The flags of `rankdeck train`, without devices and folder.
        devices: ``--devices``, for CPU devices; empty: the GPUs that Slurm gives.
        run_dir: The run's folder, which all nodes see.
        slurm: What it asks for.
        folder_per_job: The job's number is added to the folder's name, so that the file can be submitted again as a
            new run.
        log: The job's log; empty: Slurm's own name for it.
        variables: Further variables.
        resume: Flags of `rankdeck resume`, whenever the job continues its run.
        notes: Sentences for the person who reads the file.
    """

    name: str
    python: str
    python_path: str
    train: Sequence[str]
    devices: Sequence[str]
    run_dir: str
    slurm: SlurmRequest
    folder_per_job: bool = False
    log: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    resume: Sequence[str] = ()
    notes: Sequence[str] = ()


def comment(text: str) -> str:
    """A comment of a script, whatever the text holds."""
    return f"# {_one_line(text)}"


def _one_line(text: str) -> str:
    """The text without what would end the line: a folder's name may hold anything, and what follows would be run."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def batch_file(job: BatchJob) -> str:
    blocks = [_directives(job), _comment(job), _settings(job), _arguments(job), _nodes(job), _start(job), _AGAIN]
    return "\n".join(line for block in blocks for line in block) + "\n"


def _directives(job: BatchJob) -> list[str]:
    asked = job.slurm
    is_range = asked.min_nodes < asked.max_nodes
    # Told how many tasks each node has, Slurm 22.05 gives a range's least number of nodes, however many are free.
    tasks = [] if is_range else ["--ntasks-per-node=1"]
    lines = [
        f"--job-name={job.name}",
        f"--nodes={asked.min_nodes}-{asked.max_nodes}" if is_range else f"--nodes={asked.max_nodes}",
        *tasks,
        *([f"--gres=gpu:{asked.gpus_per_node}"] if asked.gpus_per_node else []),
        *([f"--cpus-per-task={asked.cpus_per_task}"] if asked.cpus_per_task else []),
        *([f"--partition={asked.partition}"] if asked.partition else []),
        *([f"--time={asked.time_limit}"] if asked.time_limit else []),
        *([f"--account={asked.account}"] if asked.account else []),
        *([f"--output={job.log.replace('%', '%%')}"] if job.log else []),  # % begins one of Slurm's patterns
        "--open-mode=append",
        "--requeue",
        f"--signal=TERM@{SIGNAL_AHEAD_S}",
        *(["--no-kill"] if is_range else []),
        *asked.options,
    ]
    return ["#!/bin/sh", *(f"#SBATCH {shlex.quote(_one_line(line))}" for line in lines)]


def _comment(job: BatchJob) -> list[str]:
    return [
        comment(f"Trains as the Rankdeck run {job.name}: one Rankdeck on each node, started by srun."),
        f"# {SIGNAL_AHEAD_S} s before the time limit, and at a preemption, the run saves a checkpoint and stops;",
        "# then the job waits in the queue again and continues the run.",
        *map(comment, job.notes),
    ]


def _settings(job: BatchJob) -> list[str]:
    # Slurm counts GPUs by their place, and CUDA by their speed where it is not told otherwise.
    order = {} if job.devices else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    variables = {**order, **({"PYTHONPATH": job.python_path} if job.python_path else {}), **job.variables}
    number = '"-$SLURM_JOB_ID"' if job.folder_per_job else ""
    return [
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        f"run={shlex.quote(job.run_dir)}{number}",
        f"python={shlex.quote(job.python)}",
        f'again="$run/{FOLDER}/again"',
        f'mkdir -p "$run/{FOLDER}" && rm -f "$again" || exit 1',
    ]


def _arguments(job: BatchJob) -> list[str]:
    """What every Rankdeck is given: the first time the settings, later the run that it continues."""
    devices = f" --devices {shlex.quote(','.join(job.devices))}" if job.devices else ""
    changes = f" {shlex.join(job.resume)}" if job.resume else ""
    return [
        'if [ -e "$run/run.toml" ]; then',
        f'  set -- resume "$run" --yes{changes}{devices}',
        "else",
        f'  set -- train {shlex.join(job.train)}{devices} --run-dir "$run" "$@"',
        "fi",
    ]


def _nodes(job: BatchJob) -> list[str]:
    """The flags of several machines. The batch script itself runs on the first node, which gets the run's host."""
    asked = job.slurm
    if asked.max_nodes == 1:
        return []
    least = '"$SLURM_JOB_NUM_NODES"' if asked.min_nodes == asked.max_nodes else f"{asked.min_nodes}"
    if asked.nic == AUTO_NIC:
        address = [
            r"""  address=$(scontrol -o show node "$SLURMD_NODENAME" | sed -n "s/.*NodeAddr=\([^ ]*\).*/\1/p")""",
            "  address=${address:-$SLURMD_NODENAME}",
        ]
    else:
        address = [f'  address=$("$python" -c {shlex.quote(_ADDRESS)} {shlex.quote(asked.nic)}) || exit 1']
    return [
        'if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then',
        *address,
        f"  port=$(({_FIRST_PORT} + SLURM_JOB_ID % {_PORT_BLOCKS} * 5))",
        f'  set -- "$@" --nodes {least}:"$SLURM_JOB_NUM_NODES" --nic {shlex.quote(asked.nic)}',
        '  set -- "$@" --rdzv-endpoint "$address:$port"',
        "fi",
    ]


def _start(job: BatchJob) -> list[str]:
    """srun. Slurm signals the tasks and not this shell, so a shell in each task notes that the job was to end."""
    spare = " --no-kill" if job.slurm.min_nodes < job.slurm.max_nodes else ""
    trap = """'trap ": > \\"\\$0\\"" TERM; "$@"; exit $?'"""
    return [
        'srun --ntasks-per-node=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" \\',
        f"  --kill-on-bad-exit=0 --wait=0{spare} \\",
        f'  sh -c {trap} "$again" "$python" -m rankdeck "$@"',
        "code=$?",
        # The highest of all tasks' codes, also of one that was killed with its node; the run continued without it.
        """if [ "$code" -gt 128 ] && grep -q '"state": *"finished"' "$run/state.json"; then code=0; fi""",
    ]


_AGAIN: Final = (
    'state=$(squeue -h -j "$SLURM_JOB_ID" -o %T)',
    """if [ -e "$again" ] && [ "$state" = RUNNING ] && grep -q '"state": *"stopped"' "$run/state.json"; then""",
    '  echo "The run has saved a checkpoint. The job waits in the queue again and will continue it."',
    '  scontrol requeue "$SLURM_JOB_ID" && sleep 60',
    "fi",
    "exit $code",
)
