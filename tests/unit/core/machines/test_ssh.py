"""Command lines of ssh; and what it prints when it fails, as title, cause and next step."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.machines import agent
from core.machines.machine import Machine
from core.machines.ssh import PYTHON_MISSING, agent_command, explain_ssh, ssh_command

pytestmark = [pytest.mark.windows]
MACHINE = Machine("Box", "me@host", 2222, "/keys/mine 100% one")
BOX = Machine("box", "me@host", 2222)


def test_what_asks_or_shares_is_off() -> None:
    argv = ssh_command("ssh", MACHINE, ["exit"])
    options = [argv[place + 1] for place, word in enumerate(argv) if word == "-o"]
    for option in (
        "BatchMode=yes", "StrictHostKeyChecking=yes", "ControlMaster=no", "ForwardAgent=no", "ClearAllForwardings=yes",
        "IdentitiesOnly=yes",
    ):  # fmt: skip
        assert option in options
    assert argv[-3:] == ["--", "me@host", "exit"]
    assert argv[argv.index("-p") + 1] == "2222" and 'IdentityFile="/keys/mine 100%% one"' in options


@pytest.mark.skipif(sys.platform != "win32", reason="a backslash separates folders only on Windows")
def test_paths_have_slashes_on_windows() -> None:
    argv = ssh_command("ssh", replace(MACHINE, identity=r"\\server\keys 100%\mine"), ["exit"])
    assert 'IdentityFile="//server/keys 100%%/mine"' in argv


def test_no_connection_is_shared() -> None:
    """Windows' OpenSSH has no shared connections; a person's settings may ask for them all the same."""
    shared = [word for word in ssh_command("ssh", MACHINE, ["exit"]) if word.startswith("Control")]
    assert shared == ["ControlMaster=no", "ControlPath=none"]


def test_a_forward_stays_on_the_loopback_of_both_sides() -> None:
    argv = ssh_command("ssh", MACHINE, ["exit"], forward=(4000, 5000))
    assert argv[argv.index("-L") + 1] == "127.0.0.1:4000:127.0.0.1:5000"
    assert "ExitOnForwardFailure=yes" in argv and "ClearAllForwardings=yes" not in argv


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


@pytest.mark.parametrize(
    ("printed", "title"),
    [
        (
            "@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
            "The host key has changed",
        ),
        ("No ED25519 host key is known for box\nHost key verification failed.", "The host key is not"),
        ("me@host: Permission denied (publickey).", "The machine does not accept"),
        ('Load key "/k": error in libcrypto\nme@host: Permission denied (publickey).', "The key file"),
        ("Warning: Identity file /k not accessible: No such file or directory.", "The key file"),
        ("ssh: connect to host host port 2222: Connection refused", "The machine cannot be reached"),
        ("bash: line 1: python3: command not found", "Python is missing"),
        ("'python3' is not recognized as an internal or external command,", "Python is missing"),
        ("client_loop: send disconnect: Broken pipe", "The machine cannot be reached"),
        ("Connection to 127.0.0.1 closed by remote host.", "The machine cannot be reached"),
        ("", "The machine cannot be reached"),
    ],
)
def test_a_failure_is_explained(printed: str, title: str) -> None:
    error = explain_ssh(BOX, printed, 255)
    assert error.title.startswith(title)
    assert "{" not in error.cause + error.next_step
    assert error.cause.endswith(".") and error.next_step


def test_one_that_took_too_long() -> None:
    assert "did not answer in time" in explain_ssh(BOX, "", None).cause
    assert "port 2222" in explain_ssh(BOX, "Connection refused", 255).cause


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("Python was not found; run without arguments to install from the Microsoft Store.", 9009),
        ('Der Befehl "python3" ist entweder falsch geschrieben oder\nkonnte nicht gefunden werden.', 1),
    ],
)
def test_a_windows_machine_without_that_python(printed: str, code: int) -> None:
    error = explain_ssh(BOX, printed, code, started=False)
    assert error.title == PYTHON_MISSING and error.cause.startswith("box cannot start python3: ")
    assert explain_ssh(BOX, printed, code).title != PYTHON_MISSING, "it had answered: something else is wrong"
    assert explain_ssh(BOX, "client_loop: send disconnect", 255, started=False).title != PYTHON_MISSING
