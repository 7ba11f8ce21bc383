"""Adding a machine: what was typed is checked, its host key is kept once it is confirmed, and a first try signs in."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.errors import PreflightError, RankdeckError, UsageError
from core.files.atomic import parse_path
from core.held_files import read_utf8
from core.machines.machine import Machine, MachineError, UnreachableError, check_address, check_name
from core.machines.machine_list import keep_host_key, keep_machine, list_machines
from core.machines.session import Session, find_ssh
from core.machines.ssh import PYTHON_MISSING, explain_ssh, ssh_command
from core.no_window import NO_WINDOW

_LIMIT_S: Final = 40.0
# What starts a Python on Linux, on Windows, and on Windows with the launcher alone.
_STARTERS: Final = ("python3", "python", "py -3")
# A path that every shell takes as it is.
_PLAIN: Final = re.compile(r"[\w./:\\+-]+", re.ASCII)
_TRY_NEXT: Final = (PYTHON_MISSING, "Python is too old there")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A machine's public host key.

    Attributes:
        line: As ssh keeps it: the name that `Machine.host_key_name` gives, the type, the key.
    """

    line: str

    @property
    def type(self) -> str:
        return self.line.split()[1]

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` prints it: "SHA256:…"."""
        digest = hashlib.sha256(base64.b64decode(self.line.split()[2])).digest()
        return f"SHA256:{base64.b64encode(digest).decode('ascii').rstrip('=')}"


def read_host_key(machine: Machine) -> HostKey:
    """The key that a machine shows now, without signing in; nothing is kept.

    Raises:
        PreflightError: This computer has no ssh.
        UnreachableError: It does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="rankdeck-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "known_hosts"
        argv = ssh_command(find_ssh(), machine, file, ["exit"], learn_key=True)
        try:
            answer = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_LIMIT_S,
                check=False,
                creationflags=NO_WINDOW,
            )
        except subprocess.TimeoutExpired:
            raise explain_ssh(machine, "Connection timed out", None) from None
        except OSError as error:
            raise PreflightError(f"ssh could not be started: {error}.", "Check that it may be executed.") from None
        lines = read_utf8(file).splitlines() if file.exists() else []
        found = [line for line in lines if line.split(" ", 1)[0] == machine.host_key_name and len(line.split()) >= 3]
        if not found:
            raise explain_ssh(machine, answer.stderr.decode("utf-8", errors="replace"), answer.returncode)
        return HostKey(found[0])


def new_machine(
    name: str,
    address: str,
    port: str = "",
    identity: str = "",
    *,
    python: str = "",
    runs_dir: str = "",
    starter: str = "",
) -> Machine:
    """A machine from the typed values, not saved yet.

    Raises:
        UsageError: Something cannot be right, or there is one of that name.
    """
    name, address = check_name(name), check_address(address)
    if any(other.name.lower() == name.lower() for other in list_machines()):
        raise UsageError(
            f"There is a machine {name} already.", "Remove it first.", option=f"rankdeck machines remove {name}"
        )
    port, python, runs_dir, starter = (text.strip() for text in (port, python, runs_dir, starter))
    return Machine(
        name, address, _port(port), _identity(identity.strip()), starter=starter, python=python, runs_dir=runs_dir
    )


def add_machine(machine: Machine, key: HostKey) -> Machine:
    """Keeps a machine whose host key was confirmed, once it lets us in and starts a Python.

    Raises:
        UnreachableError: It does not let us in; nothing is kept then.
        MachineError: It has no Python that is new enough.
        PreflightError: The list cannot be written.
    """
    machine = replace(machine, fingerprint=key.fingerprint)
    keep_host_key(machine, key.line)
    try:
        machine = _with_starter(machine)
    except BaseException:
        keep_host_key(machine, "")
        raise
    keep_machine(machine)
    return machine


def _with_starter(machine: Machine) -> Machine:
    """The machine with what starts a Python there, found by trying."""
    first: RankdeckError | None = None
    named = (machine.python,) if _PLAIN.fullmatch(machine.python) else ()
    for starter in (machine.starter,) if machine.starter else (*named, *_STARTERS):
        found = replace(machine, starter=starter)
        try:
            Session(found).close()
        except (UnreachableError, MachineError) as error:
            first = first or error
            if error.title not in _TRY_NEXT:
                raise
        else:
            return found
    assert first is not None
    raise first


def _port(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise UsageError(f"{text:.40} is not a port.", "Give a number from 1 to 65535.")
    return int(text)


def _identity(text: str) -> str:
    if not text:
        return ""
    path = parse_path(text)
    if path is None or not path.is_file():
        raise UsageError(
            f"There is no key file {text:.200}.", "Name the file of a private key, or leave it to ssh-agent."
        )
    if path.suffix == ".pub":
        raise UsageError(f"{path} is the public half of a key.", f"Name the private one: {path.with_suffix('')}")
    return str(Path(path).absolute())
