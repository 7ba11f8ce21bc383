"""SSH failures: what `ssh` printed, as title, cause and next step."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.held_files import open_binary
from core.machines.machine import Machine, UnreachableError

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
