"""Programs that make an environment: pip and Python, without what the person's own environment would lead astray."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.environments.downloads import CancelledError
from core.environments.pip_failures import explain_pip
from core.errors import RankdeckError, sentences
from core.held_files import open_binary
from core.processes.ask import Answer, read_answer, wait_until_ended
from core.processes.exit_codes import is_crash
from core.processes.tree import ProcessTree

LOG: Final = "environment.log"
"""In an environment's folder: what its programs printed."""
_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color")
_LIMIT_S: Final = 3600.0
_VERSION_LIMIT_S: Final = 60.0
_TAIL_BYTES: Final = 20_000
_SHOWN: Final = 300
# These would send packages somewhere else, or have another Python's packages found.
_UNWANTED: Final = frozenset(
    {
        *("PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"),
    }
)


class EnvironmentFailedError(RankdeckError):
    """An environment could not be made."""

    title = "The environment could not be made"


class PipFailedError(EnvironmentFailedError):
    """pip ended with an error.

    Attributes:
        missing: The index has no such version; another one may have it.
    """

    def __init__(self, cause: str, next_step: str, *, missing: bool) -> None:
        super().__init__(cause, next_step)
        self.missing = missing


def clean_environment() -> dict[str, str]:
    """This process's variables without those that lead a new Python astray."""
    return {name: value for name, value in os.environ.items() if name.upper() not in _UNWANTED}


def run_program(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], limit_s: float, cancelled: Callable[[], bool]
) -> Answer:
    """Runs a program to its end; its output is appended to the environment's log.

    Raises:
        CancelledError: `cancelled`; the program and all that it started are ended.
    """

    def waiting() -> None:
        if cancelled():
            raise CancelledError

    with ProcessTree() as tree:
        child = tree.spawn(argv, {**env, "PYTHONUTF8": "1", "PIP_PROGRESS_BAR": "off"}, folder, folder / LOG)
        wait_until_ended([child], limit_s, waiting)
        return read_answer(child)


def has_pip(python: Path, folder: Path, cancelled: Callable[[], bool]) -> bool:
    """Whether an interpreter is there and can run pip."""
    if not python.is_file():
        return False
    answer = run_program((str(python), *_PIP, "--version"), folder, clean_environment(), _VERSION_LIMIT_S, cancelled)
    return answer.code == 0


def run_pip(python: Path, folder: Path, arguments: Sequence[str], cancelled: Callable[[], bool]) -> None:
    """Runs pip.

    Raises:
        PipFailedError: It ended with an error, or took an hour.
        CancelledError: `cancelled`.
    """
    log = folder / LOG
    began = log.stat().st_size if log.is_file() else 0
    answer = run_program((str(python), *_PIP, *arguments), folder, clean_environment(), _LIMIT_S, cancelled)
    if answer.code == 0:
        return
    with open_binary(log) as stream:
        stream.seek(max(began, log.stat().st_size - _TAIL_BYTES))
        output = stream.read().decode("utf-8", errors="replace")
    failure = explain_pip(output)
    error = next((line for line in reversed(output.splitlines()) if line.startswith("ERROR:")), answer.last_line)
    if answer.code is not None and is_crash(answer.code):
        error = f"pip {answer.outcome}"
    cause = sentences(failure.cause, error.removeprefix("ERROR:").strip()[:_SHOWN])
    raise PipFailedError(cause, sentences(failure.next_step, f"See {log}."), missing=failure.missing)
