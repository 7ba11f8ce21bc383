"""Command lines of `ssh`: every option that Rankdeck gives it, in one place.

The system's own OpenSSH does the work; Windows 10 and 11 have it too. ``~/.ssh/config`` counts: hosts, users, jump
hosts and keys are found there. What would ask, forward more than we name or share a connection is turned off. Windows'
OpenSSH has no shared connections, and fails where a person's settings ask for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.machines.machine import Machine

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
