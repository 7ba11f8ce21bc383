"""Commands: each one's name, module, help and arguments, declared in one place."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from core.export import AUTO_DTYPE, DTYPES, KINDS
from core.formatting import listed
from core.launch.command_line import add_devices_flag, add_extension_flags, add_fields, add_train_flags
from core.measure.bench.contenders import Kind
from core.resume.changes import CHANGES, STOPS

# Adds arguments to a command's parser.
Adder = Callable[[argparse._ActionsContainer], object]


def _flag(*names: str, **settings: Any) -> Adder:
    return lambda parser: parser.add_argument(*names, **settings)


def _value(name: str, metavar: str, text: str, **settings: Any) -> Adder:
    return _flag(name, metavar=metavar, help=text, **settings)


def _switch(name: str, text: str) -> Adder:
    return _flag(name, action="store_true", help=text)


def _changes(resume: argparse._ActionsContainer) -> None:
    add_extension_flags(resume, CHANGES)


def _fields(*names: str) -> Adder:
    return lambda parser: add_fields(parser, names)


def _output(parser: argparse._ActionsContainer) -> None:
    output = parser.add_argument_group("output")
    _switch("--json", "Print metrics and states to stdout, one JSON object per line.")(output)
    _switch("--detach", "Start the run in the background and print its id.")(output)


def _slurm(train: argparse._ActionsContainer) -> None:
    slurm = train.add_argument_group("Slurm")
    _value("--slurm", "PARTITION", "Submit the run with sbatch.", nargs="?", const="")(slurm)
    _value("--nodes", "N", "Number of nodes. Default: 1.", type=int)(slurm)
    _value("--gpus-per-node", "N", "GPUs on each node.", type=int)(slurm)
    _value("--sbatch", "OPTION", "sbatch's: --sbatch=--time=8:00:00. May be repeated.", action="append")(slurm)


_RUN_HELP: Final = "A run's id, the start of one, its name, or its folder."
_JSON: Final = _switch("--json", "Print JSON to stdout.")
_RUNS_DIR: Final = _value("--runs-dir", "PATH", "The folder of runs.")
_ONE_RUN: Final = _value("run", "RUN", _RUN_HELP)
_RUN: Final = (_ONE_RUN, _RUNS_DIR)
_LIST: Final = (_RUNS_DIR, _JSON)
_MACHINE: Final = _value("--machine", "NAME", "Train on another machine (rankdeck machines). Default: this computer.")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `rankdeck`: the function of its name in a module below `core.cli`.

    The module is imported when the command is asked for: `rankdeck runs` needs no device library.
    """

    name: str
    module: str
    text: str
    arguments: tuple[Adder, ...]


# In the order of the list that --help prints.
COMMANDS: Final = (
    Command(
        "train",
        "train",
        "Train in the foreground; Ctrl+C saves a checkpoint and stops; a second Ctrl+C stops immediately.",
        (add_train_flags, _MACHINE, _slurm, _output),
    ),
    Command(
        "run",
        "train",
        "Run your own training script, unmodified, one process per device.",
        (
            _flag("-m", "--module", metavar="MODULE", help="Run a module, as python -m does."),
            add_devices_flag,
            _value("--num-gpus", "N", "Number of GPUs, -1 for all; without a GPU, number of CPU devices."),
            _value("--python", "PATH", "The Python interpreter or its environment's folder. Default: this one."),
            _value("--cwd", "PATH", "The folder to run in. Default: this one."),
            _value("--restarts", "N", "If a process fails, restart all of them, up to this many times."),
            _switch("--no-torchrun", "On one device: don't set torchrun's variables."),
            _value("--env", "NAME=VALUE", "An environment variable for the script; may be repeated.", action="append"),
            _value(
                "--map",
                "NAME=CHART",
                "Chart a printed name; NAME=step: the step counter; NAME=-: don't chart it.",
                action="append",
            ),
            _value("--mode", "MODE", "ddp, or independent: each process is a separate single-process run."),
            _value("--stop-signal", "HOW", "auto, interrupt, terminate or none."),
            _value("--stop-deadline-s", "S", "Seconds the script may take to stop. Default: 30."),
            _value("--steps", "N", "The number of steps that the script makes, to show the remaining time."),
            _fields(*STOPS, "log_file"),
            _MACHINE,
            _value("--run-dir", "PATH", "The run's folder. Default: a new one under --runs-dir."),
            _RUNS_DIR,
            _output,
            _value("script_argv", "SCRIPT ARGS", "The script and its arguments.", nargs=argparse.REMAINDER),
        ),
    ),
    Command(
        "resume",
        "train",
        "Resume a stopped or interrupted run.",
        (
            _value("path", "PATH", "A run's folder or id, or a chunk_tracker_state.json."),
            _changes,
            _value("--checkpoint", "N", "Resume from this checkpoint; newer ones are set aside."),
            _value("--recipe", "NAME", "The recipe to train (for a state file of AI-OS)."),
            _MACHINE,
            _RUNS_DIR,
            _switch("--dry-run", "Show what would happen, without doing it."),
            _switch("--yes", "Run the run's own code without asking."),
            _switch("--trust-recipe", "Run that code even if it is stored in the run's folder."),
            _output,
        ),
    ),
    Command(
        "stop",
        "runs",
        "Save a checkpoint at the next step and stop a run; ask a script to stop.",
        (_switch("--now", "Stop immediately, without saving."), *_RUN),
    ),
    Command("attach", "runs", "Watch a run; Ctrl+C leaves it running.", (*_RUN, _JSON)),
    Command(
        "show",
        "runs",
        "Show one run's state.",
        (
            _switch("--samples", "Show the text samples of each evaluation, oldest first."),
            _value("--step", "N", "Show only the samples of this step.", type=int),
            *_RUN,
            _JSON,
        ),
    ),
    Command(
        "export",
        "export",
        "Export a run for other programs: tables, weights, Hugging Face.",
        (
            *_RUN,
            _flag("--to", required=True, choices=tuple(KINDS), help="The export format."),
            _value("--out", "PATH", "The destination. Default: exports in the run's folder."),
            _value("--checkpoint", "N", "Export the weights of this checkpoint.", type=int),
            _flag("--generation", dest="checkpoint", type=int, help=argparse.SUPPRESS),  # 0.1
            _flag(
                "--dtype",
                choices=DTYPES,
                default=AUTO_DTYPE,
                help="The numbers of a Hugging Face folder. auto: as the base model has them, fp32 for a model from "
                "scratch.",
            ),
            _switch("--overwrite", "Replace files of the same names in PATH."),
            _switch("--trust-recipe", "Run the recipe's code even if it was never started on this machine."),
            _JSON,
        ),
    ),
    Command(
        "runs",
        "runs",
        "List all runs.",
        (_switch("--live", "Only runs that are running, also those in other folders."), *_LIST),
    ),
    Command(
        "find",
        "organise",
        "List the runs that match a filter, for example: lr>1e-4 tag:night state:failed",
        (
            _value(
                "filter",
                "FILTER",
                "Words of its name, note or tags, and NAME:TEXT, NAME=VALUE or NAME>NUMBER of its state and settings.",
                nargs="+",
            ),
            *_LIST,
        ),
    ),
    Command(
        "compare",
        "organise",
        "Compare runs: results, and the settings that differ.",
        (
            _value("runs", "RUN", f"Two to eight runs. {_RUN_HELP}", nargs="+"),
            _switch("--all", "Also show settings that are the same."),
            _JSON,
            _RUNS_DIR,
        ),
    ),
    Command(
        "rename",
        "organise",
        "Give a run another name.",
        (_ONE_RUN, _value("name", "NAME", 'The new name; "" removes it.', nargs="+"), _RUNS_DIR),
    ),
    Command(
        "note",
        "organise",
        "Print a run's note, or replace it.",
        (_ONE_RUN, _value("text", "TEXT", "The new note; - reads it from standard input.", nargs="*"), _RUNS_DIR),
    ),
    Command(
        "tag",
        "organise",
        "Add tags to a run, or remove some.",
        (
            _ONE_RUN,
            _value("tags", "TAG", "A tag to add. Without any, the tags are printed.", nargs="*"),
            _value("--remove", "TAG", "A tag to remove; may be repeated.", action="append"),
            _RUNS_DIR,
        ),
    ),
    Command(
        "rm",
        "organise",
        "Move runs to the system's recycle bin, or delete them for good.",
        (
            _value("runs", "RUN", _RUN_HELP, nargs="*"),
            _switch("--all", "All runs of the folder."),
            _switch("--permanently", "Delete for good, past the recycle bin."),
            _RUNS_DIR,
        ),
    ),
    Command(
        "doctor",
        "doctor",
        "Check this machine: modes, GPUs, PyTorch, memory, disk; --self-test: try devices and links.",
        (
            _RUNS_DIR,
            _switch("--self-test", "Also compute on each device and connect two processes."),
            _value("--zip", "FILE", "Write diagnostics to FILE, without secrets."),
            _switch("--yes", "Write FILE without asking."),
            _JSON,
        ),
    ),
    Command(
        "environment",
        "environment",
        "List, make, use or remove environments for training, with PyTorch.",
        (
            _value(
                "action",
                "ACTION",
                "make completes one that was interrupted, use trains with it from now on. Default: list.",
                nargs="?",
                choices=("list", "make", "use", "remove"),
                default="list",
            ),
            _value("name", "NAME", "The environment. make: by default after PyTorch.", nargs="?"),
            _value("--build", "BUILD", "Of PyTorch: auto, cpu, cu126, cu130, rocm7.2. Default: auto."),
            _value("--extra", "NAME", "bpe, data, hf or rl.", action="append"),
            _value("--wheels", "PATH", "A folder of wheels; nothing is downloaded."),
            _value("--drive", "PATH", "make: a drive or folder for environments, models and new runs."),
            _value("--folder", "PATH", "Where environments are kept; make remembers it."),
            _switch("--all", "remove: all environments, and the one in use."),
            _JSON,
        ),
    ),
    Command(
        "machines",
        "machines",
        "List, add, check or set up other machines to train on over SSH.",
        (
            _value(
                "action",
                "ACTION",
                "check runs the doctor there, setup makes the environment there. Default: list.",
                nargs="?",
                choices=("list", "add", "remove", "check", "setup"),
                default="list",
            ),
            _value("name", "NAME", "The machine.", nargs="?"),
            _value("address", "ADDRESS", "add: user@host, or a host of ~/.ssh/config.", nargs="?"),
            _value("--port", "N", "add: the port of its SSH server. Default: as ssh has it.", type=int),
            _value("--identity", "FILE", "add: the private key. Default: ssh-agent's, and ssh's own."),
            _value("--python", "PATH", "add: a Python there with PyTorch. Default: setup makes one."),
            _value("--starter", "WORDS", "add: what starts a Python there. Default: python3."),
            _value("--remote-runs-dir", "PATH", "add: the folder of runs there."),
            _value("--build", "BUILD", "setup: of PyTorch, as in rankdeck environment make."),
            _value("--wheels", "PATH", "setup: a folder of wheels there; nothing is downloaded."),
            _JSON,
        ),
    ),
    Command(
        "fetch",
        "machines",
        "Bring a checkpoint of a run on another machine here.",
        (*_RUN, _value("--checkpoint", "N", "Which checkpoint. Default: the newest.")),
    ),
    Command(
        "estimate",
        "estimate",
        "Estimate a run's memory and time in every mode before it starts; --history: how accurate that was.",
        (
            add_train_flags,
            _switch("--history", "Show predicted and measured memory and time of all runs, and the error."),
            _JSON,
        ),
    ),
    Command(
        "tune",
        "tune",
        "Try micro-batches with real steps on all devices, and show the one with which a run trains fastest.",
        (add_train_flags, _value("--seconds", "S", "How long they are tried. Default: 60.", type=float), _JSON),
    ),
    Command(
        "bench",
        "bench",
        "Measure scaling over devices, or all-reduce.",
        (
            _value("kind", "KIND", f"{listed([*Kind])}.", choices=[kind.value for kind in Kind]),
            add_train_flags,
            _value("--counts", "LIST", "Numbers of devices, for example 1,2,4. Default: 1, 2, 4, 8 and all."),
            _value("--turns", "N", "How often each is measured. Default: 5, comm 3.", type=int),
            _value("--seconds", "S", "How long each turn is timed. Default: 2, comm 5.", type=float),
            _value("--out", "DIR", "Also write all figures to a file in this folder, as JSON."),
            _JSON,
        ),
    ),
    Command(
        "preview",
        "preview",
        "Show a dataset as the model will see it: samples, text column, bad rows, length of an epoch.",
        (
            add_train_flags,
            _value("--documents", "N", "How many documents and samples to show. Default: 3.", type=int),
            _switch("--all", "Tokenise the whole dataset and cache the tokens for training."),
            _JSON,
        ),
    ),
    Command("devices", "machine", "List the devices that can train, and who uses them.", _LIST),
    Command(
        "recipes",
        "machine",
        "List recipes, or show a recipe's settings; recipes new NAME creates your own.",
        (
            _value("which", "RECIPE", "The recipe whose settings to show; new: create your own.", nargs="?"),
            _value("name", "NAME", "After new: the new recipe's name.", nargs="?"),
            _value("--folder", "PATH", "The folder to create the new recipe in."),
            _JSON,
        ),
    ),
)
