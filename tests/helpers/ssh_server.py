"""A real sshd on loopback or in a network namespace, with its own keys and settings, for tests of other machines.

The other machine is this one with another home: its data folder and its runs are below the server's folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
import pytest

_PLACES: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/ssh")
_START_LIMIT_S: Final = 20.0


def find_sshd() -> str:
    found = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), *_PLACES]))
    if found is None or shutil.which("ssh") is None:
        pytest.skip("sshd is not installed (Debian: apt-get install openssh-server)")
    return found


class SshServer:
    """The server. Started on construction; `close` ends it and every connection.

    Args:
        folder: Its own.
        host: The address at which it listens.
        enter: The command that starts another one where that address is.

    Attributes:
        runs: The folder of runs there.
        data: The folder of data there.
        key: The private key that it accepts.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1", enter: Sequence[str] = ()) -> None:
        self._host, self._enter = host, enter
        self._sshd = find_sshd()
        self._folder = folder
        self.runs = folder / "Läufe drüben"
        self.data = folder / "Daten drüben"
        self.key = folder / "Schlüssel eins"
        folder.mkdir(parents=True)
        for path in (self.key, folder / "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        shutil.copyfile(f"{self.key}.pub", folder / "authorized_keys")
        self.port = _free_port()
        self._environment = {
            "XDG_DATA_HOME": str(self.data),
            "RANKDECK_HOME": str(self.runs),
            "OMP_NUM_THREADS": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }
        self._write_settings()
        self._path = os.environ["PATH"]
        os.environ["PATH"] = os.pathsep.join((str(self._write_ssh()), self._path))
        self._server: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"{psutil.Process().username()}@{self._host}"

    @property
    def add(self) -> list[str]:
        python = ["--python", sys.executable, "--starter", sys.executable]
        return [self.address, "--port", str(self.port), "--identity", str(self.key), *python]

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # Debian's sshd wants it, and the service makes it
        log = self._folder / "sshd.log"
        argv = [*self._enter, self._sshd, "-D", "-f", str(self._folder / "sshd_config"), "-E", str(log)]
        self._server = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self._host, self.port), 1):
                return
            assert time.monotonic() < deadline and self._server.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)

    def cut(self) -> None:
        """Breaks every connection; new ones are accepted."""
        assert self._server is not None
        for child in psutil.Process(self._server.pid).children():
            with contextlib.suppress(psutil.Error):
                child.kill()

    def stop(self) -> None:
        """Breaks every connection and accepts none, as a machine without a network does."""
        if self._server is not None:
            with contextlib.suppress(psutil.Error):
                for child in psutil.Process(self._server.pid).children():
                    child.kill()
            self._server.terminate()
            self._server.wait(10)
            self._server = None

    def close(self) -> None:
        """Ends it, and lets this process find the system's ssh again."""
        self.stop()
        os.environ["PATH"] = self._path

    def change_host_key(self) -> None:
        for name in ("host_key", "host_key.pub"):
            (self._folder / name).unlink()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._folder / "host_key"], check=True)

    def use_shell(self, command: str) -> None:
        """Runs every command by this one from now on, as another login shell would: it is in `SSH_ORIGINAL_COMMAND`."""
        self.stop()
        self._write_settings(f"ForceCommand {command}")
        self.start()

    def set_clock(self, ahead_s: int) -> None:
        """Lets every program there see a clock that is off; files keep this computer's times."""
        compiler = shutil.which("gcc")
        if compiler is None:
            pytest.skip("a clock that is off is compiled with gcc")
        library = self._folder / "clock.so"
        source = Path(__file__).with_name("other_clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        self._environment |= {"LD_PRELOAD": str(library), "OTHER_CLOCK_S": str(ahead_s)}
        self.stop()
        self._write_settings()
        self.start()

    def forget_host_key(self) -> None:
        """Lets this computer not know its host key any more."""
        (self._folder / "known_hosts").write_bytes(b"")

    def _write_ssh(self) -> Path:
        """Makes an ssh that knows this server's host key; returns its folder."""
        known = self._folder / "known_hosts"
        key = (self._folder / "host_key.pub").read_text(encoding="utf-8")
        known.write_text(f"[{self._host}]:{self.port} {key}", encoding="utf-8")
        program = self._folder / "bin" / "ssh"
        program.parent.mkdir()
        command = f'exec {shutil.which("ssh")} -o \'UserKnownHostsFile="{known}"\' "$@"'
        program.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        program.chmod(0o755)
        return program.parent

    def _write_settings(self, *more: str) -> None:
        lines = [
            f"Port {self.port}",
            f"ListenAddress {self._host}",
            f'HostKey "{self._folder / "host_key"}"',
            f'AuthorizedKeysFile "{self._folder / "authorized_keys"}"',
            "PidFile none",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            "SetEnv " + " ".join(f'"{name}={value}"' for name, value in self._environment.items()),
            *more,
        ]
        (self._folder / "sshd_config").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
