"""Command lines of `ssh`, the system's own OpenSSH, and explanations of its failures.

``~/.ssh/config`` and ``~/.ssh/known_hosts`` count: hosts, users, jump hosts, keys and host keys are found there, and a
host key that is not known is refused. Whatever would ask a question, forward
more than one port or share a connection is turned off. Windows' OpenSSH has no shared connections, and fails where a
person's settings ask for one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.machines.machine import Machine, UnreachableError

CONNECT_TIMEOUT_S: Final = 15
ALIVE_EVERY_S: Final = 5
ALIVE_COUNT: Final = 3
_OFF: Final = (
    "BatchMode=yes",
    "ControlMaster=no",
    "ControlPath=none",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "LogLevel=ERROR",
)
PYTHON_MISSING: Final = "Python is missing on the machine"
_INSTALL_PYTHON: Final = "Install Python 3.11 or newer there, then add the machine again."
# By the pattern in its output: title, cause and next step of each failure of ssh.
_KINDS: Final = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key .* has changed",
        "The host key has changed",
        "{name} shows another host key than before. It was installed again, or another computer answers in its place.",
        "Ask its administrator. If the new key is right, remove the old one from your ~/.ssh/known_hosts.",
    ),
    (
        r"Host key verification failed",
        "The host key is not known",
        "{where} shows a host key that you have not confirmed yet.",
        "Sign in once in a terminal, compare the key with its administrator's, and confirm it: {login}",
    ),
    (
        r"Load key|Identity file .* not accessible|UNPROTECTED PRIVATE KEY",
        "The key file cannot be used",
        "ssh cannot use the key file {identity}.",
        "Check the file and that only you can read it.",
    ),
    (
        r"Permission denied|Too many authentication failures|No supported authentication",
        "The machine does not accept your key",
        "{address} refused every key. Rankdeck never asks for passwords or passphrases.",
        "Load the key into ssh-agent (one with a passphrase always), or add the machine with its key file. Try it in a "
        "terminal: {login}",
    ),
    (
        r"python\S*: (command )?not found|is not recognized|No such file or directory|cannot find the path",
        PYTHON_MISSING,
        "{name} cannot start {starter}.",
        _INSTALL_PYTHON,
    ),
)
# Ssh's exit code for its own errors; every other code is that of the program there.
_OWN_CODE: Final = 255


def ssh_command(
    program: str,
    machine: Machine,
    remote: Sequence[str],
    *,
    forward: tuple[int, int] | None = None,
) -> list[str]:
    """Make a command line that runs another one on a machine.

    Args:
        program: The ssh.
        machine: The machine.
        remote: The command there; its shell splits it at blanks.
        forward: A port of this computer's loopback, and the one there that it leads to.
    """
    options = [
        *_OFF,
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
        f"ServerAliveInterval={ALIVE_EVERY_S}",
        f"ServerAliveCountMax={ALIVE_COUNT}",
    ]
    options += ["ExitOnForwardFailure=yes"] if forward is not None else ["ClearAllForwardings=yes"]
    argv = [program, "-T"]
    for option in options:
        argv += ["-o", option]
    argv += ["-p", str(machine.port)] if machine.port is not None else []
    if machine.identity:
        argv += ["-o", "IdentitiesOnly=yes", "-o", f"IdentityFile={_quoted(Path(machine.identity))}"]
    if forward is not None:
        argv += ["-L", f"127.0.0.1:{forward[0]}:127.0.0.1:{forward[1]}"]
    return [*argv, "--", machine.address, *remote]


def agent_command(starter: str, source_bytes: int) -> list[str]:
    """Make the command there that reads a program from its standard input and runs it."""
    # Double quotes, and nothing in them that sh, cmd or PowerShell would replace.
    return [*starter.split(" "), "-u", "-c", f'"import sys;exec(sys.stdin.buffer.read({source_bytes}))"']


def _quoted(path: Path) -> str:
    """A path as the value of an option, where ssh splits at blanks and replaces ``%``."""
    # With slashes on Windows too: two backslashes, as in the name of a share, would be taken for one.
    text = path.as_posix().replace("%", "%%")
    return f'"{text}"' if '"' not in text else text.replace(" ", "\\ ")


def explain_ssh(machine: Machine, printed: str, code: int | None, *, started: bool = True) -> RankdeckError:
    """Make the error for an ssh that ended before the other side had answered.

    Args:
        machine: The machine.
        printed: The text on its standard error.
        code: Its exit code; None if it had to be ended.
        started: The program there has answered before. Where none did, and ssh itself is content, it could not be
            started: cmd says so in the language of that Windows, and so does the Microsoft Store's stand-in for Python.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = (lines[-1] if lines else "nothing").rstrip(".")
    port = "" if machine.port is None else f"-p {machine.port} "
    values = {
        "login": f"ssh {port}{machine.address}",
        "name": machine.name,
        "address": machine.address,
        "where": machine.address if machine.port is None else f"{machine.address}, port {machine.port}",
        "identity": machine.identity or "of your settings",
        "starter": machine.starter,
    }
    for pattern, title, cause, step in _KINDS:
        if re.search(pattern, printed, re.IGNORECASE):
            return UnreachableError(cause.format(**values), step.format(**values), title=title)
    if not started and code not in (None, _OWN_CODE):
        cause = f"{machine.name} cannot start {machine.starter}: {last}."
        return UnreachableError(cause, _INSTALL_PYTHON, title=PYTHON_MISSING)
    ended = "did not answer in time" if code is None else f"ended with code {code}"
    return UnreachableError(
        f"The connection to {values['where']} {ended}; ssh says: {last}.",
        "Check its name, that it is switched on and has an SSH server, your network, VPN and ~/.ssh/config. What has "
        f"arrived is kept. Try it in a terminal: {values['login']}",
    )
