"""Host keys: what a machine shows when it is asked for the first time, and its fingerprint, before anybody signs in."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import PreflightError
from core.held_files import read_utf8
from core.machines.machine import Machine
from core.machines.session import find_ssh
from core.machines.ssh_command import ssh_command
from core.machines.ssh_failure import explain_ssh
from core.no_window import NO_WINDOW

_LIMIT_S: Final = 40.0


@dataclass(frozen=True, slots=True)
class HostKey:
    """A machine's public host key.

    Attributes:
        line: As ssh keeps it: the name that `Machine.host_key_name` gives, the type, the key.
    """

    line: str

    @property
    def type(self) -> str:
        """ "ssh-ed25519"."""
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
