"""Set-up of a machine: makes a small Python for Rankdeck there, then the environment with PyTorch for its GPUs."""

from __future__ import annotations

from collections import deque
from typing import Final

from core.environments.pip_failures import error_line, explain_pip
from core.environments.wanted import CONSTRAINTS, requirements
from core.errors import full_stop
from core.machine.packages import find_dependencies
from core.machines.answers import Done
from core.machines.machine import Machine, MachineError, Report
from core.machines.session import Session, serving
from core.machines.tree import own_code

_SMALL: Final = ("psutil", "nvidia-ml-py", "orjson", "pyyaml", "tomli-w", "platformdirs")  # those that `core` imports
_LINE_LIMIT_S: Final = 600.0
_KEPT_LINES: Final = 2000
_STEP_LIMIT_S: Final = 1800.0


def set_up(machine: Machine, build: str, wheels: str, report: Report) -> None:
    """Make the missing environments there, and complete an interrupted one.

    Args:
        machine: The machine.
        build: PyTorch's build; "auto" is the one for the driver there.
        wheels: A folder of wheels there, so that nothing is downloaded; empty: from the package index.
        report: Receives each step.

    Raises:
        UnreachableError: There is no connection.
        MachineError: It cannot be made.
    """
    if not machine.python:
        with Session(machine) as session:
            if not session.hello.has_own_python:
                _make_python(session, wheels, report)
    report("Sending Rankdeck")
    request = {
        "op": "make_environment",
        "build": build,
        "wheels": wheels,
        "requirements": list(requirements(find_dependencies(), {}, ())),
    }
    with serving(machine) as session:
        report("Looking for PyTorch")
        session.run(request, report, _STEP_LIMIT_S)


def _make_python(session: Session, wheels: str, report: Report) -> None:
    folder, python = session.hello.own_folder, session.hello.own_python
    _run(
        session,
        "Making a Python environment",
        [session.hello.executable, "-m", "venv", "--clear", folder],
        report,
    )
    constraints = f"{session.send_tree(own_code())}/{CONSTRAINTS.name}"
    source = ["--no-index", "--find-links", wheels] if wheels else []
    source += ["--constraint", constraints] if CONSTRAINTS.is_file() else []
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *source, *_SMALL]
    _run(session, "Installing what Rankdeck needs", pip, report)
    session.ask({"op": "python_made"}, Done)


def _run(session: Session, step: str, argv: list[str], report: Report) -> None:
    """Run a program there; its lines are progress, and the last ones the reason if it fails."""
    lines: deque[str] = deque(maxlen=_KEPT_LINES)

    def say(line: str) -> None:
        lines.append(line)
        report(f"{step}: {line.strip()[:100]}")

    report(step)
    if session.run({"op": "program", "argv": argv}, say, _LINE_LIMIT_S) != 0:
        raise _failed(session.machine, list(lines))


def _failed(machine: Machine, lines: list[str]) -> MachineError:
    text = "\n".join(lines)
    if "ensurepip is not" in text or "No module named venv" in text:
        return MachineError(
            f"The Python of {machine.name} cannot make environments: its venv is not installed.",
            "Install it there (Debian, Ubuntu: sudo apt install python3-venv), then set the machine up again.",
            title="The machine could not be set up",
            code=3,
        )
    failure = explain_pip(text)
    reason = error_line(text) or next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    return MachineError(
        f"{machine.name}: {failure.cause or full_stop(reason.strip()[:300])}",
        failure.next_step or "Correct that there, then set the machine up again.",
        title="The machine could not be set up",
        code=3,
    )
