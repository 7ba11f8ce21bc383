"""What ssh prints when it fails, as title, cause and next step."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from core.machines.machine import Machine
from core.machines.ssh_failure import PYTHON_MISSING, REFUSED, explain_ssh

pytestmark = [pytest.mark.windows]
MACHINE = Machine("box", "me@host", 2222)


@pytest.mark.parametrize(
    ("printed", "title"),
    [
        ("@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.", "The host key is not"),
        ("No ED25519 host key is known for rankdeck-box\nHost key verification failed.", "The host key is not"),
        ("me@host: Permission denied (publickey).", "The machine does not accept"),
        ('Load key "/k": error in libcrypto\nme@host: Permission denied (publickey).', "The key file"),
        ("Warning: Identity file /k not accessible: No such file or directory.", "The key file"),
        ("ssh: Could not resolve hostname host: Name or service not known", "There is no host"),
        ("ssh: Could not resolve hostname host: No such host is known.", "There is no host"),
        ("ssh: connect to host host port 2222: Connection refused", "The machine cannot be reached"),
        ("ssh: connect to host host port 22: Connection timed out", "The machine cannot be reached"),
        ("ssh: connect to host host port 22: Network is unreachable", "The machine cannot be reached"),
        ("bash: line 1: python3: command not found", "Python is missing"),
        ("'python3' is not recognized as an internal or external command,", "Python is missing"),
        ("/home/me/.ssh/config: terminating, 1 bad configuration options", "ssh does not accept its settings"),
        ("client_loop: send disconnect: Broken pipe", "The machine cannot be reached"),
        ("Connection to 127.0.0.1 closed by remote host.", "The machine cannot be reached"),
        ("", "The machine cannot be reached"),
    ],
)
def test_a_failure_is_explained(printed: str, title: str) -> None:
    error = explain_ssh(MACHINE, printed, 255)
    assert error.title.startswith(title)
    assert "{" not in error.cause + error.next_step
    assert error.cause.endswith(".") and error.next_step


def test_a_key_with_a_passphrase_is_named(tmp_path: Path) -> None:
    def key(name: str, cipher: bytes) -> str:
        path = tmp_path / name
        body = base64.encodebytes(b"openssh-key-v1\0" + len(cipher).to_bytes(4, "big") + cipher + b"\0" * 60)
        path.write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + body + b"-----END OPENSSH PRIVATE KEY-----\n")
        return str(path)

    old = tmp_path / "old"
    old.write_bytes(b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n")
    for identity, title in (
        (key("closed", b"aes256-ctr"), "The key has a passphrase"),
        (str(old), "The key has a passphrase"),
        (key("open", b"none"), REFUSED),
        (str(tmp_path / "gone"), REFUSED),
        ("", REFUSED),
    ):
        machine = replace(MACHINE, identity=identity)
        assert explain_ssh(machine, "me@host: Permission denied (publickey).", 255).title == title


def test_one_that_took_too_long() -> None:
    assert "did not answer in time" in explain_ssh(MACHINE, "", None).cause
    assert "port 2222" in explain_ssh(MACHINE, "Connection refused", 255).cause


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("Python was not found; run without arguments to install from the Microsoft Store.", 9009),
        ('Der Befehl "python3" ist entweder falsch geschrieben oder\nkonnte nicht gefunden werden.', 1),
    ],
)
def test_a_windows_machine_without_that_python(printed: str, code: int) -> None:
    error = explain_ssh(MACHINE, printed, code, started=False)
    assert error.title == PYTHON_MISSING and error.cause.startswith("box cannot start python3: ")
    assert explain_ssh(MACHINE, printed, code).title != PYTHON_MISSING, "it had answered: something else is wrong"
    assert explain_ssh(MACHINE, "client_loop: send disconnect", 255, started=False).title != PYTHON_MISSING
