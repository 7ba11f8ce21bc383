"""Programs that make an environment: pip and Python, without variables that lead them astray."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.environments.downloads import CancelledError
from core.environments.pip_environment import clean
from core.environments.pip_failures import error_line, explain_pip
from core.errors import RankdeckError, sentences
from core.held_files import open_binary
from core.processes.ask import Answer, read_answer, wait_until_ended
from core.processes.exit_codes import is_crash
from core.processes.tree import ProcessTree

# In an environment's folder: what its programs printed.
LOG: Final = "environment.log"
# Without a second try pip does not say why an index has not answered, only that it found nothing.
_PIP_OPTIONS: Final = ("--disable-pip-version-check", "--no-input", "--no-color", "--retries", "3")
_LIMIT_S: Final = 3600.0
_VERSION_LIMIT_S: Final = 60.0
_TAIL_BYTES: Final = 20_000
_SHOWN: Final = 300


class EnvironmentFailedError(RankdeckError):
    title = "The environment could not be made"


class PipFailedError(EnvironmentFailedError):
    """pip ended with an error; `missing` and `requirement` are those of `Fault`."""

    def __init__(self, cause: str, next_step: str, *, missing: bool, requirement: str = "") -> None:
        super().__init__(cause, next_step)
        self.missing = missing
        self.requirement = requirement


def clean_environment() -> dict[str, str]:
    return clean(os.environ)


def run_program(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], limit_s: float, cancelled: Callable[[], bool]
) -> Answer:
    """Run a program to its end; its output is appended to the environment's log.

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


def pip_of(python: Path) -> tuple[str, ...]:
    return (str(python), "-m", "pip")


def has_pip(python: Path, folder: Path, cancelled: Callable[[], bool]) -> bool:
    if not python.is_file():
        return False
    answer = run_program(
        (*pip_of(python), *_PIP_OPTIONS, "--version"), folder, clean_environment(), _VERSION_LIMIT_S, cancelled
    )
    return answer.code == 0


def run_pip(pip: Sequence[str], folder: Path, arguments: Sequence[str], cancelled: Callable[[], bool]) -> None:
    """Run pip with its output appended to the log in `folder`.

    Raises:
        PipFailedError: It ended with an error, or took an hour.
        CancelledError: `cancelled`.
    """
    log = folder / LOG
    began = log.stat().st_size if log.is_file() else 0
    answer = run_program((*pip, *_PIP_OPTIONS, *arguments), folder, clean_environment(), _LIMIT_S, cancelled)
    if answer.code == 0:
        return
    with open_binary(log) as stream:
        stream.seek(max(began, log.stat().st_size - _TAIL_BYTES))
        output = stream.read().decode("utf-8", errors="replace")
    failure = explain_pip(output)
    error = error_line(output) or answer.last_line
    if answer.code is not None and is_crash(answer.code):
        error = f"pip {answer.outcome}"
    cause = sentences(failure.cause, error[:_SHOWN])
    next_step = sentences(failure.next_step, f"See {log}.")
    raise PipFailedError(cause, next_step, missing=failure.missing, requirement=failure.requirement)
