"""Command lines of ssh."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.machines import agent
from core.machines.machine import Machine
from core.machines.ssh_command import agent_command, ssh_command

pytestmark = [pytest.mark.windows]
MACHINE = Machine("Box", "me@host", 2222, "/keys/mine one")
KNOWN = Path("/home/Läufe mit Raum/100%/known_hosts")


def test_what_asks_or_shares_is_off() -> None:
    argv = ssh_command("ssh", MACHINE, KNOWN, ["exit"])
    options = [argv[place + 1] for place, word in enumerate(argv) if word == "-o"]
    for option in (
        "BatchMode=yes", "StrictHostKeyChecking=yes", "ControlMaster=no", "ForwardAgent=no",
        "HostKeyAlias=rankdeck-box", "ClearAllForwardings=yes", "GlobalKnownHostsFile=none", "IdentitiesOnly=yes",
    ):  # fmt: skip
        assert option in options
    assert 'UserKnownHostsFile="/home/Läufe mit Raum/100%%/known_hosts"' in options
    assert argv[-3:] == ["--", "me@host", "exit"]
    assert argv[argv.index("-p") + 1] == "2222" and 'IdentityFile="/keys/mine one"' in options


@pytest.mark.skipif(sys.platform != "win32", reason="a backslash separates folders only on Windows")
def test_paths_have_slashes_on_windows() -> None:
    argv = ssh_command(
        "ssh", replace(MACHINE, identity=r"\\server\keys 100%\mine"), Path(r"C:\a b\known_hosts"), ["exit"]
    )
    assert 'IdentityFile="//server/keys 100%%/mine"' in argv and 'UserKnownHostsFile="C:/a b/known_hosts"' in argv


def test_no_connection_is_shared() -> None:
    """Windows' OpenSSH has no shared connections; a person's settings may ask for them all the same."""
    shared = [word for word in ssh_command("ssh", MACHINE, KNOWN, ["exit"]) if word.startswith("Control")]
    assert shared == ["ControlMaster=no", "ControlPath=none"]


def test_a_forward_stays_on_the_loopback_of_both_sides() -> None:
    argv = ssh_command("ssh", MACHINE, KNOWN, ["exit"], forward=(4000, 5000))
    assert argv[argv.index("-L") + 1] == "127.0.0.1:4000:127.0.0.1:5000"
    assert "ExitOnForwardFailure=yes" in argv and "ClearAllForwardings=yes" not in argv


def test_a_key_is_learned_without_signing_in() -> None:
    argv = ssh_command("ssh", Machine("box", "alias"), KNOWN, ["exit"], learn_key=True)
    assert {"StrictHostKeyChecking=accept-new", "PreferredAuthentications=none"} < set(argv)
    assert "-p" not in argv and not any(word.startswith("IdentityFile") for word in argv)


def test_the_command_there_runs_a_program_of_its_standard_input() -> None:
    source = b"print('from ' + 'there')\n"
    command = " ".join(agent_command("python3", len(source)))
    answer = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]], input=source + b"the rest", capture_output=True, check=True
    )
    assert answer.stdout.split() == [b"from", b"there"]
    assert not set(command.split('"')[1]) & set("$`\\%!")  # what sh, cmd and PowerShell replace between quotes


def test_the_agent_is_text_that_any_shell_side_python_reads() -> None:
    assert Path(agent.__file__).read_bytes().isascii()
