"""Entry point of the command line: arguments in, exit code out. Every failure is three lines, never a traceback.

A command is a function of its own name. What it raises, a `RankdeckError`, is printed here.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import core
from core.cli.commands import COMMANDS
from core.cli.parser import parse
from core.cli.terminal import Terminal
from core.errors import RankdeckError, UsageError
from core.files.long_paths import is_too_long
from core.paths import default_runs_dir

INTERRUPTED: Final = 130
# Linux's PATH_MAX. Windows answers a longer one with "not found", so that a folder would seem to be missing.
LONGEST_PATH: Final = 4096
PATHS: Final = ("recipe", "model", "dataset_file", "run_dir", "runs_dir", "log_file", "config", "out", "folder", "cwd")
DEFECT_LOG: Final = "rankdeck-errors.log"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 0 done, 1 the run failed, 2 bad arguments, config or state file, 3 a check of this machine
        refused, 130 interrupted.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    terminal = Terminal()
    try:
        return _run(arguments, terminal)
    except RankdeckError as error:
        terminal.error(error)
        return error.exit_code
    except SystemExit as ending:  # --help
        return ending.code if isinstance(ending.code, int) else 0
    except KeyboardInterrupt:
        terminal.end_progress()
        return INTERRUPTED
    except Exception as error:
        failure = _name_too_long(error) or _defect(error)
        terminal.error(failure)
        return failure.exit_code


def _run(argv: Sequence[str], terminal: Terminal) -> int:
    arguments = parse(argv)
    if arguments.version:
        terminal.say(f"Rankdeck {core.__version__}")
        return 0
    if arguments.command is None:
        parse(["--help"])
    for name in PATHS:
        value = getattr(arguments, name, None)
        if isinstance(value, str) and len(value) > LONGEST_PATH:
            raise _too_long(value)
    terminal.quiet = any(getattr(arguments, name, False) for name in ("json", "csv", "detach"))
    command = next(command for command in COMMANDS if command.name == arguments.command)
    module = importlib.import_module(f"core.cli.{command.module}")
    code: int = getattr(module, arguments.command)(arguments, terminal)
    return code


def _name_too_long(error: Exception) -> UsageError | None:
    return _too_long(str(error.filename)) if isinstance(error, OSError) and is_too_long(error) else None


def _too_long(name: str) -> UsageError:
    return UsageError(
        f"The path {name[:60]}… has {len(name):,} characters, which is longer than any file system allows.",
        "Give a shorter path.",
        title="The path is too long",
    )


def _defect(error: Exception) -> RankdeckError:
    """Save an unforeseen error with its traceback in a file, and name that file."""
    text = time.strftime("%Y-%m-%d %H:%M:%S ") + " ".join(sys.argv) + "\n" + "".join(traceback.format_exception(error))
    message = f"{type(error).__name__}: {str(error).rstrip('.') or 'no message'}."
    for folder in (default_runs_dir(), Path(tempfile.gettempdir())):
        path = folder / DEFECT_LOG
        try:
            with path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(text + "\n")
        except OSError:
            continue
        step = f"Please report it with the end of {path}."
        break
    else:
        step = "Please report it. The details could not be saved to a file."
    return RankdeckError(message, step, title="Rankdeck failed unexpectedly")
