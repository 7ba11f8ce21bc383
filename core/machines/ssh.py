"""Command lines of `ssh`: every option that Rankdeck gives it, in one place; and what `ssh` prints when it fails.

The system's own OpenSSH does the work; Windows 10 and 11 have it too. ``~/.ssh/config`` counts: hosts, users, jump
hosts and keys are found there. What would ask, forward more than we name or share a connection is turned off. Windows'
OpenSSH has no shared connections, and fails where a person's settings ask for one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.held_files import open_binary
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
    "UpdateHostKeys=no",
    "LogLevel=ERROR",
)
PYTHON_MISSING: Final = "Python is missing on the machine"
_INSTALL_PYTHON: Final = "Install Python 3.11 or newer there, then add the machine again."
REFUSED: Final = "The machine does not accept your key"
_OPENSSH_KEY: Final = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----(.+?)-----END", re.DOTALL)
_CIPHER_NONE: Final = b"openssh-key-v1\0\0\0\0\x04none"
_MAX_KEY_BYTES: Final = 1 << 16
_KINDS: Final = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key .* has changed",
        "The host key is not the one that was confirmed",
        "{name} shows another host key than the one that was confirmed. It was installed again, or another computer "
        "answers in its place.",
        "Ask its administrator. If the new key is right, remove the machine from the list and add it again.",
    ),
    (
        r"Load key|Identity file .* not accessible|UNPROTECTED PRIVATE KEY",
        "The key file cannot be used",
        "ssh cannot use the key file {identity}.",
        "Check the file and that only you can read it.",
    ),
    (
        r"Permission denied|Too many authentication failures|No supported authentication",
        REFUSED,
        "{address} refused every key. Rankdeck never asks for passwords.",
        "Load the key into ssh-agent, or add the machine with its key file. Try it in a terminal: ssh {address}",
    ),
    (
        r"Could not resolve hostname|Name or service not known|No such host is known",
        "There is no host of that name",
        "The name of {address} has no address.",
        "Check the name, your network and VPN.",
    ),
    (
        r"Connection refused",
        "The machine cannot be reached",
        "Nothing listens for SSH at {where}.",
        "Start its SSH server, or check the port.",
    ),
    (
        r"timed out|No route to host|Network is unreachable|Host is down",
        "The machine cannot be reached",
        "{where} does not answer.",
        "Check that it is switched on, your network and VPN.",
    ),
    (
        r"Bad owner or permissions|terminating, \d+ bad configuration|Bad configuration option",
        "ssh does not accept its settings",
        "ssh says: {last}.",
        "Correct your ~/.ssh/config.",
    ),
    (
        r"closed by remote host|connection reset|broken pipe",
        "The machine cannot be reached",
        "The connection to {name} broke.",
        "Try again: what has arrived is kept.",
    ),
    (
        r"python\S*: (command )?not found|is not recognized|No such file or directory|cannot find the path",
        PYTHON_MISSING,
        "{name} cannot start {starter}.",
        _INSTALL_PYTHON,
    ),
)
_OWN_CODE: Final = 255  # what ssh ends with for its own errors; every other code is that of the program there


def ssh_command(
    program: str,
    machine: Machine,
    known_hosts: Path,
    remote: Sequence[str],
    *,
    forward: tuple[int, int] | None = None,
    learn_key: bool = False,
) -> list[str]:
    """A command line that runs another one on a machine.

    Args:
        program: The ssh.
        machine: Where.
        known_hosts: The file of its host key. No other counts.
        remote: The command there; its shell splits it at blanks.
        forward: A port of this computer's loopback, and the one there that it leads to.
        learn_key: Enter a host key that is not known yet, and sign in with nothing.
    """
    options = [
        *_OFF,
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
        f"ServerAliveInterval={ALIVE_EVERY_S}",
        f"ServerAliveCountMax={ALIVE_COUNT}",
        f"HostKeyAlias={machine.host_key_name}",
        f"UserKnownHostsFile={_quoted(known_hosts)}",
        "GlobalKnownHostsFile=none",
        "CheckHostIP=no",
        "HashKnownHosts=no",
        f"StrictHostKeyChecking={'accept-new' if learn_key else 'yes'}",
    ]
    options += ["PreferredAuthentications=none"] if learn_key else []
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
    """The command there that reads a program from its standard input, and runs it.

    Double quotes, and nothing in them that sh, cmd or PowerShell would replace.
    """
    return [*starter.split(" "), "-u", "-c", f'"import sys;exec(sys.stdin.buffer.read({source_bytes}))"']


def _quoted(path: Path) -> str:
    """A path as the value of an option, where ssh splits at blanks, and replaces ``%``. With slashes on Windows too: a
    backslash before another one, as a share's name has it, would be taken for one."""
    text = path.as_posix().replace("%", "%%")
    return f'"{text}"' if '"' not in text else text.replace(" ", "\\ ")


def explain_ssh(machine: Machine, printed: str, code: int | None, *, started: bool = True) -> RankdeckError:
    """The error for an ssh that ended before the other side had answered.

    Args:
        machine: Where it should have gone.
        printed: What it wrote to its standard error.
        code: Its exit code; None if it had to be ended.
        started: The program there has answered before. Where none did, and ssh itself is content, it could not be
            started: cmd says so in the language of that Windows, and so does the Microsoft Store's stand-in for Python.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = (lines[-1] if lines else "nothing").rstrip(".")
    values = {
        "name": machine.name,
        "address": machine.address,
        "where": machine.address if machine.port is None else f"{machine.address}, port {machine.port}",
        "identity": machine.identity or "of your settings",
        "starter": machine.starter,
        "last": last,
    }
    for pattern, title, cause, step in _KINDS:
        if re.search(pattern, printed, re.IGNORECASE):
            if title == REFUSED and has_passphrase(machine.identity):
                return UnreachableError(
                    f"The key file {machine.identity} has a passphrase, and ssh-agent does not hold the key. Rankdeck "
                    "never asks for one.",
                    f'Load it into ssh-agent: ssh-add "{machine.identity}"',
                    title="The key has a passphrase",
                )
            return UnreachableError(cause.format(**values), step.format(**values), title=title)
    if not started and code not in (None, _OWN_CODE):
        cause = f"{machine.name} cannot start {machine.starter}: {last}."
        return UnreachableError(cause, _INSTALL_PYTHON, title=PYTHON_MISSING)
    ended = "did not answer in time" if code is None else f"ended with code {code}"
    return UnreachableError(
        f"The connection to {machine.name} {ended}; ssh says: {last}.", f"Try it in a terminal: ssh {machine.address}"
    )


def has_passphrase(identity: str) -> bool:
    """Whether a private key is encrypted, as far as its file says so."""
    try:
        with open_binary(Path(identity)) as file:
            data = file.read(_MAX_KEY_BYTES)
    except OSError:
        return False
    if (found := _OPENSSH_KEY.search(data)) is None:
        return b"ENCRYPTED" in data
    try:
        return not base64.b64decode(found[1]).startswith(_CIPHER_NONE)
    except ValueError:
        return False
