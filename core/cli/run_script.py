"""`rankdeck run train.py ARGS…`: the recipe `script` with torchrun's syntax, passed to `rankdeck train`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from core.cli.parser import parse
from core.cli.terminal import Terminal
from core.cli.train import train
from core.config.arguments import join_arguments
from core.errors import UsageError
from core.recipes.user_script import RECIPE
from core.resume.changes import STOPS

_PASSED_ON: Final = ("devices", "num_gpus", "mode", "run_dir", "runs_dir", "log_file", "steps", "machine", *STOPS)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Starts a script of the user's own as a new run."""
    return train(parse(train_argv(arguments, Path.cwd())), terminal)


def train_argv(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """The arguments of `rankdeck train` that do the same.

    Args:
        arguments: Those of `rankdeck run`.
        folder: The current folder, in which the script runs, as with python.

    Raises:
        UsageError: No script is named.
    """
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
    argv = ["train", "--recipe", RECIPE]
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
