"""The two commands of bootstrap.py: set up what is missing, then become `rankdeck` or pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.environments.pip_environment import without_python_home
from installer.console import ProgressLine, SetupError
from installer.environment import Environment
from installer.packages import OF_RECIPES

USAGE: Final = """\
Usage:
  python installer/bootstrap.py run [ARGS...]     the same as `rankdeck ARGS...`; with no ARGS the window opens
  python installer/bootstrap.py test [--all]      the tests of every push, offscreen; --all: all tests
  python installer/bootstrap.py test ARGS...       the same as `pytest ARGS...`, offscreen
"""
# Where there is no wheel that fits, the tests of DeepSpeed say why they are skipped.
_TESTED: Final = frozenset({"bpe", "test"} | ({"deepspeed"} if sys.platform == "linux" else set()))
EXTRAS: Final = {"run": frozenset({"bpe"}) | OF_RECIPES, "test": _TESTED}
INTERRUPTED: Final = 130


def main(arguments: Sequence[str]) -> int:
    """Carry out ``run`` or ``test``; on POSIX it does not come back when all is well."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    command = arguments[0] if arguments else ""
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command not in EXTRAS:
        sys.stderr.write(f"{USAGE}Unknown command: {command!r}.\n" if command else USAGE)
        return 2
    environment = Environment(Path(__file__).resolve().parent.parent)
    rest = list(arguments[1:])
    try:
        _set_up(environment, EXTRAS[command], needs_qt=command == "test" or not rest)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. The next call starts again.\n")
        return INTERRUPTED
    if command == "run":
        # -P: a folder named `app` in the current folder must not be imported instead of ours.
        return _become([str(environment.python), "-P", "-m", "app", *rest])
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.chdir(environment.root)
    if rest in ([], ["--all"]):
        return _become([str(environment.python), "-m", "tests.run_suite", *rest])
    return _become([str(environment.python), "-m", "pytest", *rest])


def run(command: Sequence[str]) -> int:
    """Run a program and wait for it; Ctrl+C reaches it too, and it decides what that means."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = subprocess.Popen(command, env=without_python_home(os.environ))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _set_up(environment: Environment, extras: frozenset[str], *, needs_qt: bool) -> None:
    """Make the environment ready, and Qt loadable if a window or the tests are wanted."""
    ready = environment.is_ready(extras)
    check_qt = sys.platform == "linux" and not (ready and environment.has_qt())
    if ready and not (check_qt and needs_qt):
        return
    with ProgressLine(sys.stderr) as progress:
        if not ready:
            environment.make_ready(extras, progress)
        if check_qt:
            _check_qt(environment, progress, needs_qt)
        progress.say("ready")


def _check_qt(environment: Environment, progress: ProgressLine, needs_qt: bool) -> None:
    from installer.qt_libraries import ensure_qt_libraries

    try:
        ensure_qt_libraries(environment.site_packages, progress, environment.log)
    except SetupError as error:
        if needs_qt:
            raise
        sys.stderr.write(f"{error}\n")
    else:
        environment.note_qt()


def _become(command: list[str]) -> int:
    """Run a program in this one's place; Windows cannot do that, so there its exit code is waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform != "win32":
        os.execve(command[0], command, without_python_home(os.environ))
    return run(command)
