"""`Machine`: another computer that can train, its errors, and the checks of its name and address."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from core.config.run_config import RunConfig
from core.errors import RankdeckError, UsageError
from core.records import Limits, Text

HERE: Final = "here"
# Before the path of a dataset that lies on the machine that trains.
THERE: Final = "there://"
# Receives the progress of a long operation, each time as a line: "Sending data: 3 MB of 20 MB".
Report = Callable[[str], None]
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_ADDRESS: Final = re.compile(r"([A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9_\[:][\w.:%\]-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Machine:
    """The way to reach a machine. Nothing secret: keys are the agent's, or stay in their file.

    Attributes:
        name: The user's name for it.
        address: ``user@host``, or a host of ``~/.ssh/config``.
        port: The port of its SSH server; None: the one of ssh's own settings.
        identity: The file of the private key; empty: the agent's keys and ssh's own settings.
        starter: The words that start a Python there, found when it was added.
        python: The interpreter there that trains; empty: the one that Set up makes.
        runs_dir: The folder of runs there; empty: Rankdeck's own.
    """

    name: Annotated[str, Limits(1, 40)]
    address: Annotated[str, Limits(1, 255)]
    port: Annotated[int, Limits(1, 65535)] | None = None
    identity: Text = ""
    starter: Text = "python3"
    python: Text = ""
    runs_dir: Text = ""


class UnreachableError(RankdeckError):
    """A machine does not answer over SSH; what runs there is not affected."""

    title = "The machine cannot be reached"


class MachineError(RankdeckError):
    """A machine answered, and refused or failed; `code` is the exit code that the failure has there."""

    title = "The machine refused"

    def __init__(
        self, cause: str, next_step: str, *, title: str | None = None, code: int = 1, option: str = ""
    ) -> None:
        super().__init__(cause, next_step, title=title, option=option)
        self.exit_code = code  # type: ignore[misc]  # the class's is for errors that begin here


class NotSetUpError(MachineError):
    """A machine has no environment that can train."""

    def __init__(self, machine: Machine, cause: str, step: str = "Set it up.") -> None:
        # In the window too: nothing there does it.
        step = f"{step.rstrip('.')}: rankdeck machines setup {machine.name}"
        super().__init__(cause, step, title="The machine is not set up", code=3)


def check_name(name: str) -> str:
    """Strip a name of blanks; raises `UsageError` where no machine can have it."""
    name = name.strip()
    if not _NAME.fullmatch(name) or name.lower() == HERE:
        taken = " That word means this computer." if name.lower() == HERE else ""
        raise UsageError(
            f"{name!r:.80} is not a name for a machine.{taken}",
            "Use up to 40 letters, digits, dots, - and _.",
            title="Invalid name",
        )
    return name


def check_address(address: str) -> str:
    """Strip an address of blanks; raises `UsageError` for other text, such as a word that ssh takes for an option."""
    address = address.strip()
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{address!r:.80} is not an address.",
            "Write user@host, or a host of your ~/.ssh/config.",
            title="Invalid address",
        )
    return address


def check_not_there(config: RunConfig) -> None:
    """Refuse data that lies on another machine for a run here, with a `UsageError`."""
    if config.dataset_file.strip().startswith(THERE):
        raise UsageError(
            f"{config.dataset_file} is a path on another machine, and the run would be here.",
            "Name the machine, or data that is here.",
            option="--machine NAME",
        )
