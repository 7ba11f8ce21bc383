"""Argument parser. A mistake becomes a `UsageError`: three lines, never a page of usage."""

from __future__ import annotations

import argparse
import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NoReturn

from core.bench.kinds import Kind
from core.cli.aliases import end_of_flags, translate_aliases, with_dashes
from core.cli.machine_flags import add_machine_flag, add_machines_flags
from core.cli.node_flags import add_nodes_flags
from core.cli.slurm_flags import add_slurm_flags
from core.config.launch_kinds import LAUNCH_KINDS
from core.errors import UsageError
from core.export import AUTO_DTYPE, DTYPES, KINDS
from core.formatting import listed
from core.launch.command_line import add_extension_flags, add_fields, add_train_flags
from core.resume.changes import CHANGES, STOPS

VERSION_FLAG: Final = "--version"
_SENTENCES: Final = (
    (r"unrecognized arguments: (.*)", "There is no flag or argument {}."),
    (r"the following arguments are required: (.*)", "Something is missing: {}."),
    (r"argument COMMAND: invalid choice: '([^']*)'", "There is no command {!r}."),
    (r"argument KIND: invalid choice: '([^']*)'", "There is no benchmark {!r}."),
    (r"argument ACTION: invalid choice: '([^']*)'", "There is no action {!r}."),
    (r"argument (--[\w-]+): invalid choice: '([^']*)'", "{} cannot be {!r}."),
)
"""argparse's messages, and ours."""
_SLURM_HELP: Final = "list; follow: state, place in the queue, log; cancel; submit: again, to continue the run."
_RUN_HELP: Final = "A run's id, the start of one, its name, or its folder."


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises instead of printing and exiting; --help still prints."""

    def error(self, message: str) -> NoReturn:
        """Raises argparse's message as a `UsageError`."""
        raise UsageError(_sentence(message), self._next_step(message), title="Invalid command")

    def flags(self) -> dict[str, bool]:
        """Its flags, and whether a value follows."""
        return {flag: action.nargs != 0 for flag, action in self._option_string_actions.items()}

    def repeated(self, arguments: Sequence[str]) -> list[str]:
        """The flags among `arguments` that stand there more than once and take one value."""
        counts: Counter[argparse.Action] = Counter()
        following = iter(arguments)
        for argument in following:
            name, equals, _ = argument.partition("=")
            action = self._option_string_actions.get(name)
            if action is None or isinstance(action, argparse._AppendAction):
                continue
            counts[action] += 1
            if action.nargs != 0 and not equals:
                next(following, None)
        return [action.option_strings[0] for action, count in counts.items() if count > 1]

    def _next_step(self, message: str) -> str:
        wrong = re.search(r"(?:unrecognized arguments|ambiguous option): (--?[\w-]+)", message)
        if wrong is not None:
            near = difflib.get_close_matches(wrong[1], list(self._option_string_actions), n=1)
            if near:
                return f"Did you mean {near[0]}? {self.prog} --help lists every flag."
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            names = re.findall(r"[\w-]+", choice[2])
            near = difflib.get_close_matches(choice[1].lower(), names, n=1)
            meant = f"Did you mean {near[0]}? " if near else ""
            flag = re.match(r"argument (--[\w-]+)", message)
            if flag is not None:
                return f"{meant}{flag[1]} takes one of: {', '.join(names)}."
            what = "benchmarks" if message.startswith("argument KIND") else "commands"
            return meant.rstrip() or f"The {what} are: {', '.join(names)}."
        return f"{self.prog} --help lists its arguments."


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """`argv` (without the program's name) as a namespace; `command` is the command's name.

    Raises:
        UsageError: They are invalid.
        SystemExit: After --help.
    """
    parser, commands = _build()
    arguments, rest = parser.parse_known_args(_translated(argv, commands))
    if rest:
        commands.get(arguments.command, parser).error(f"unrecognized arguments: {' '.join(rest)}")
    return arguments


def repeated_flags(argv: Sequence[str]) -> list[str]:
    """The flags of a command line that `parse` takes which are given several times, though only the last one counts."""
    _, commands = _build()
    arguments = _translated(argv, commands)
    command = commands.get(arguments[0]) if arguments else None
    return [] if command is None else command.repeated(arguments[: end_of_flags(arguments, command.flags())])


def _translated(argv: Sequence[str], commands: Mapping[str, Parser]) -> list[str]:
    return with_dashes(translate_aliases(argv), {name: command.flags() for name, command in commands.items()})


@cache
def _build() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(prog="rankdeck", description="Trains PyTorch models on several devices.", allow_abbrev=False)
    parser.add_argument(VERSION_FLAG, action="store_true", help="Print the version.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    made: dict[str, Parser] = {}
    for name, text, add in _COMMANDS:
        made[name] = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        add(made[name])
    return parser, made


def _add_train(train: Parser) -> None:
    add_train_flags(train)
    add_machine_flag(train)
    _add_local_rank(train)
    add_nodes_flags(train)
    train.add_argument(
        "--distributed", metavar="FILE", help="World size, nodes and DDP settings in a .toml, .yaml or .json file."
    )
    add_slurm_flags(train)
    _add_output(train)


def _add_resume(resume: Parser) -> None:
    resume.add_argument("path", metavar="PATH", help="A run's folder or id, or a chunk_tracker_state.json.")
    add_extension_flags(resume, CHANGES)
    resume.add_argument("--checkpoint", metavar="N", help="Resume from this checkpoint; newer ones are set aside.")
    resume.add_argument("--recipe", metavar="NAME", help="The recipe to train (for a state file of AI-OS).")
    add_machine_flag(resume)
    _add_runs_dir(resume)
    _add_local_rank(resume)
    add_nodes_flags(resume)
    resume.add_argument("--dry-run", action="store_true", help="Show what would happen, without doing it.")
    resume.add_argument("--yes", action="store_true", help="Run the run's own code without asking.")
    resume.add_argument(
        "--trust-recipe", action="store_true", help="Run that code even if it is stored in the run's folder."
    )
    add_slurm_flags(resume)
    _add_output(resume)


def _add_local_rank(parser: Parser) -> None:
    parser.add_argument(
        "--local-rank", metavar="N", type=int, help="Set by torch.distributed.launch for each process it starts."
    )


def _add_stop(stop: Parser) -> None:
    stop.add_argument("--now", action="store_true", help="Stop immediately, without saving.")
    _add_run_name(stop)


def _add_attach(attach: Parser) -> None:
    _add_run_name(attach)
    _add_json(attach)


def _add_show(show: Parser) -> None:
    show.add_argument("--samples", action="store_true", help="Show the text samples of each evaluation, oldest first.")
    show.add_argument("--step", metavar="N", type=int, help="Show only the samples of this step.")
    _add_run_name(show)
    _add_json(show)


def _add_export(export: Parser) -> None:
    _add_run_name(export)
    export.add_argument(
        "--to",
        required=True,
        choices=(*KINDS, *LAUNCH_KINDS),
        help="The export format, or the launcher that a file is for.",
    )
    export.add_argument("--out", metavar="PATH", help="The destination. Default: exports in the run's folder.")
    export.add_argument("--checkpoint", metavar="N", type=int, help="Export the weights of this checkpoint.")
    export.add_argument("--generation", dest="checkpoint", type=int, help=argparse.SUPPRESS)  # 0.1
    export.add_argument("--allow-diverged", action="store_true", help="Also export weights that are not finite.")
    export.add_argument(
        "--dtype",
        choices=DTYPES,
        default=AUTO_DTYPE,
        help="The numbers of a Hugging Face folder. auto: as the base model has them, fp32 for a model from scratch.",
    )
    export.add_argument("--overwrite", action="store_true", help="Replace files of the same names in PATH.")
    export.add_argument(
        "--trust-recipe",
        action="store_true",
        help="Run the recipe's code even if it was never started on this machine.",
    )
    export.add_argument("--nodes", metavar="N|MIN:MAX", help="How many nodes a batch file asks Slurm for.")
    export.add_argument("--nic", metavar="NAME", help="The nodes' network interface. Default: auto.")
    _add_json(export)


def _add_runs(runs: Parser) -> None:
    runs.add_argument("--live", action="store_true", help="Only runs that are running, also those in other folders.")
    _add_list(runs)


def _add_list(runs: Parser) -> None:
    _add_runs_dir(runs)
    _add_json(runs)


def _add_find(find: Parser) -> None:
    find.add_argument(
        "filter",
        nargs="+",
        metavar="FILTER",
        help="Words of its name, note or tags, and NAME:TEXT, NAME=VALUE or NAME>NUMBER of its state and settings.",
    )
    _add_list(find)


def _add_compare(compare: Parser) -> None:
    compare.add_argument("runs", metavar="RUN", nargs="+", help=f"Two to eight runs. {_RUN_HELP}")
    compare.add_argument("--all", action="store_true", help="Also show settings and environment that are the same.")
    form = compare.add_mutually_exclusive_group()
    _add_json(form)
    form.add_argument("--csv", action="store_true", help="Print CSV to stdout.")
    _add_runs_dir(compare)


def _add_rename(rename: Parser) -> None:
    rename.add_argument("run", metavar="RUN", help=_RUN_HELP)
    rename.add_argument("name", metavar="NAME", nargs="+", help='The new name; "" removes it.')
    _add_runs_dir(rename)


def _add_note(note: Parser) -> None:
    note.add_argument("run", metavar="RUN", help=_RUN_HELP)
    note.add_argument("text", metavar="TEXT", nargs="*", help="The new note; - reads it from standard input.")
    _add_runs_dir(note)


def _add_tag(tag: Parser) -> None:
    tag.add_argument("run", metavar="RUN", help=_RUN_HELP)
    tag.add_argument("tags", metavar="TAG", nargs="*", help="A tag to add. Without any, the tags are printed.")
    tag.add_argument("--remove", metavar="TAG", action="append", help="A tag to remove; may be repeated.")
    _add_runs_dir(tag)


def _add_rm(rm: Parser) -> None:
    rm.add_argument("runs", metavar="RUN", nargs="*", help=_RUN_HELP)
    rm.add_argument("--all", action="store_true", help="All runs of the folder.")
    _add_runs_dir(rm)


def _add_bin(binned: Parser) -> None:
    binned.add_argument(
        "action",
        nargs="?",
        choices=("list", "restore", "delete", "empty"),
        default="list",
        metavar="ACTION",
        help="restore puts runs back, delete deletes them for good, empty deletes all. Default: list.",
    )
    binned.add_argument("runs", metavar="RUN", nargs="*", help="The id or the name of a run in the bin.")
    _add_list(binned)


def _add_environment(environment: Parser) -> None:
    environment.add_argument(
        "action",
        nargs="?",
        choices=("list", "make", "use", "remove"),
        default="list",
        metavar="ACTION",
        help="make completes one that was interrupted, use trains with it from now on. Default: list.",
    )
    environment.add_argument("name", metavar="NAME", nargs="?", help="The environment. make: by default after PyTorch.")
    environment.add_argument(
        "--build", metavar="BUILD", help="Of PyTorch: auto, cpu, cu126, cu130, rocm7.2. Default: auto."
    )
    environment.add_argument("--extra", metavar="NAME", action="append", help="bpe, data, hf, rl or deepspeed.")
    environment.add_argument("--wheels", metavar="PATH", help="A folder of wheels; nothing is downloaded.")
    environment.add_argument(
        "--drive", metavar="PATH", help="make: a drive or folder for environments, models and new runs."
    )
    environment.add_argument("--folder", metavar="PATH", help="Where environments are kept; make remembers it.")
    environment.add_argument("--models", metavar="PATH", help="make: where Hugging Face's downloads are kept.")
    environment.add_argument("--runs", metavar="PATH", help="make: where new runs are kept.")
    environment.add_argument("--dry-run", action="store_true", help="make: say how large it is, and make nothing.")
    environment.add_argument("--all", action="store_true", help="remove: all environments, and the one in use.")
    _add_json(environment)


def _add_machines(machines: Parser) -> None:
    add_machines_flags(machines)
    _add_json(machines)


def _add_slurm(slurm: Parser) -> None:
    slurm.add_argument("action", metavar="ACTION", choices=("list", "follow", "cancel", "submit"), help=_SLURM_HELP)
    slurm.add_argument("run", metavar="RUN", nargs="?", help="A submitted run's name, the start of one, or its job.")
    _add_runs_dir(slurm)
    _add_json(slurm)


def _add_fetch(fetch: Parser) -> None:
    _add_run_name(fetch)
    fetch.add_argument("--checkpoint", metavar="N", help="Which checkpoint. Default: the newest.")


def _add_measure(measure: Parser) -> None:
    measure.add_argument("--devices", metavar="LIST", help="Two or more devices, for example cpux2. Default: all.")
    measure.add_argument("--parameters", metavar="N", type=float, help="The model's trainable parameters.")
    measure.add_argument(
        "--step-time-s", metavar="S", type=float, help="The time of one step without synchronisation, in seconds."
    )
    measure.add_argument("--runs-dir", metavar="PATH", help="The folder of runs; the result is saved there.")
    _add_json(measure)


def _add_estimate(estimate: Parser) -> None:
    add_train_flags(estimate)
    estimate.add_argument(
        "--history", action="store_true", help="Show predicted and measured memory and time of all runs, and the error."
    )
    estimate.add_argument(
        "--price-kwh", metavar="PRICE", help="What a kilowatt hour costs, for example '0.30 €'. It is remembered."
    )
    estimate.add_argument(
        "--price-gpu-hour",
        metavar="PRICE",
        help="What an hour of one GPU costs, for example '$2.50'. It is remembered.",
    )
    _add_json(estimate)


def _add_tune(tune: Parser) -> None:
    add_train_flags(tune)
    tune.add_argument("--seconds", metavar="S", type=float, help="How long settings are tried. Default: 60.")
    _add_json(tune)


def _add_bench(bench: Parser) -> None:
    bench.add_argument("kind", metavar="KIND", choices=[kind.value for kind in Kind], help=f"{listed([*Kind])}.")
    add_train_flags(bench)
    bench.add_argument(
        "--counts", metavar="LIST", help="Numbers of devices, for example 1,2,4. Default: 1, 2, 4, 8 and all."
    )
    bench.add_argument("--turns", metavar="N", type=int, help="How often each is measured. Default: 5, comm 3.")
    bench.add_argument(
        "--seconds", metavar="S", type=float, help="How long each turn is timed. Default: 2, comm 5, memory 30."
    )
    bench.add_argument("--out", metavar="DIR", help="Write the table and pictures to this folder.")
    _add_json(bench)


def _add_doctor(doctor: Parser) -> None:
    add_train_flags(doctor)
    doctor.add_argument(
        "--self-test",
        action="store_true",
        help="Also compute on each device, connect two processes, measure the model.",
    )
    doctor.add_argument(
        "--zip", metavar="FILE", help="Write diagnostics to FILE, without names of the user and the machine."
    )
    doctor.add_argument("--yes", action="store_true", help="Write FILE without asking.")
    _add_json(doctor)


def _add_selftest(selftest: Parser) -> None:
    _add_runs_dir(selftest)
    selftest.add_argument(
        "--out",
        metavar="FILE",
        default="rankdeck-selftest.zip",
        help="The file to send back, without names of the user and the machine. Default: %(default)s.",
    )
    _add_json(selftest)


def _add_preview(preview: Parser) -> None:
    add_train_flags(preview)
    preview.add_argument(
        "--documents", metavar="N", type=int, help="How many documents and samples to show. Default: 3."
    )
    preview.add_argument(
        "--all", action="store_true", help="Tokenise the whole dataset and cache the tokens for training."
    )
    _add_json(preview)


def _add_recipes(recipes: Parser) -> None:
    recipes.add_argument(
        "which", nargs="?", metavar="RECIPE", help="The recipe whose settings to show; new: create your own."
    )
    recipes.add_argument("name", nargs="?", metavar="NAME", help="After new: the new recipe's name.")
    recipes.add_argument("--folder", metavar="PATH", help="The folder to create the new recipe in.")
    _add_json(recipes)


def _add_run(run: Parser) -> None:
    run.usage = "rankdeck run [FLAGS] SCRIPT [ARGS …] | rankdeck run [FLAGS] -m MODULE [-- ARGS …]"
    run.add_argument("-m", "--module", metavar="MODULE", help="Run a module, as python -m does.")
    run.add_argument("--devices", metavar="LIST", help="auto, cpux2, cuda:0,cuda:1 or GPU UUIDs; one process each.")
    run.add_argument(
        "--num-gpus", metavar="N", help="Number of GPUs, -1 for all; without a GPU, number of CPU devices."
    )
    run.add_argument(
        "--python", metavar="PATH", help="The Python interpreter or its environment's folder. Default: this one."
    )
    run.add_argument("--cwd", metavar="PATH", help="The folder to run in. Default: this one.")
    run.add_argument("--restarts", metavar="N", help="If a process fails, restart all of them, up to this many times.")
    run.add_argument("--no-torchrun", action="store_true", help="On one device: don't set torchrun's variables.")
    run.add_argument(
        "--env", metavar="NAME=VALUE", action="append", help="An environment variable for the script; may be repeated."
    )
    run.add_argument(
        "--map",
        metavar="NAME=CHART",
        action="append",
        help="Chart a printed name; NAME=step: the step counter; NAME=-: don't chart it.",
    )
    run.add_argument(
        "--mode", metavar="MODE", help="ddp, or independent: each process is a separate single-process run."
    )
    run.add_argument("--stop-signal", metavar="HOW", help="auto, interrupt, terminate or none.")
    run.add_argument("--stop-deadline-s", metavar="S", help="Seconds the script may take to stop. Default: 30.")
    run.add_argument(
        "--steps", metavar="N", help="The number of steps that the script makes, to show the remaining time."
    )
    add_fields(run, STOPS)
    add_machine_flag(run)
    run.add_argument("--run-dir", metavar="PATH", help="The run's folder. Default: a new one under --runs-dir.")
    run.add_argument("--runs-dir", metavar="PATH", help="The folder of runs.")
    run.add_argument("--log-file", metavar="PATH", help="Also write the metrics to this file.")
    _add_output(run)
    _add_local_rank(run)
    run.add_argument(
        "script_argv", nargs=argparse.REMAINDER, metavar="SCRIPT ARGS", help="The script and its arguments."
    )


def _add_run_name(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    _add_runs_dir(parser)


def _add_runs_dir(parser: Parser) -> None:
    parser.add_argument("--runs-dir", metavar="PATH", help="The folder of runs.")


def _add_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON to stdout.")


def _add_output(parser: Parser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", action="store_true", help="Print metrics and states to stdout, one JSON object per line."
    )
    output.add_argument("--detach", action="store_true", help="Start the run in the background and print its id.")


def _sentence(message: str) -> str:
    """argparse's message as a sentence."""
    for pattern, sentence in _SENTENCES:
        found = re.match(pattern, message)
        if found is not None:
            return sentence.format(*found.groups())
    return f"{message[0].upper()}{message[1:].rstrip('.')}."


_COMMANDS: Final[tuple[tuple[str, str, Callable[[Parser], None]], ...]] = (
    (
        "train",
        "Train in the foreground; Ctrl+C saves a checkpoint and stops; a second Ctrl+C stops immediately.",
        _add_train,
    ),
    ("run", "Run your own training script, unmodified, one process per device.", _add_run),
    ("resume", "Resume a stopped or interrupted run.", _add_resume),
    ("stop", "Save a checkpoint at the next step and stop a run; ask a script to stop.", _add_stop),
    ("attach", "Watch a run; Ctrl+C leaves it running.", _add_attach),
    ("show", "Show one run's state.", _add_show),
    ("export", "Export a run for other programs: tables, TensorBoard, weights, Hugging Face, launchers.", _add_export),
    ("runs", "List all runs.", _add_runs),
    ("find", "List the runs that match a filter, for example: lr>1e-4 tag:night state:failed", _add_find),
    ("compare", "Compare runs: results, and the settings and environment that differ.", _add_compare),
    ("rename", "Give a run another name.", _add_rename),
    ("note", "Print a run's note, or replace it.", _add_note),
    ("tag", "Add tags to a run, or remove some.", _add_tag),
    ("rm", "Move runs to the bin.", _add_rm),
    ("bin", "List the runs in the bin, put some back, or delete them for good.", _add_bin),
    (
        "doctor",
        "Check this machine: modes, GPUs, PyTorch, memory, disk; --self-test: try devices and links.",
        _add_doctor,
    ),
    (
        "selftest",
        "Try on this PC what no test machine can show, and write one file to send back.",
        _add_selftest,
    ),
    (
        "environment",
        "List, make, use or remove environments for training, with PyTorch.",
        _add_environment,
    ),
    (
        "machines",
        "List, add, check or set up other machines to train on over SSH.",
        _add_machines,
    ),
    ("slurm", "List, follow, cancel or submit again runs that train --slurm has submitted.", _add_slurm),
    ("fetch", "Bring a checkpoint of a run on another machine here.", _add_fetch),
    ("measure", "Measure the link between devices and estimate the cost of synchronising.", _add_measure),
    (
        "estimate",
        "Estimate a run's memory, time and cost in every mode before it starts; --history: how accurate that was.",
        _add_estimate,
    ),
    (
        "tune",
        "Try settings with real steps on all devices, and show those with which a run trains fastest.",
        _add_tune,
    ),
    (
        "bench",
        "Measure scaling over devices, all-reduce, memory over time, or the cost of accumulation.",
        _add_bench,
    ),
    (
        "preview",
        "Show a dataset as the model will see it: samples, text column, bad rows, length of an epoch.",
        _add_preview,
    ),
    ("devices", "List the devices that can train, and who uses them.", _add_list),
    ("recipes", "List recipes, or show a recipe's settings; recipes new NAME creates your own.", _add_recipes),
)
"""Each command's name, help and flags, in the order of the list that --help prints."""
