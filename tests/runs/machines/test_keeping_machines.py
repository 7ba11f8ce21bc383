"""Machines: added with their host key, checked, removed; and every failure with title, cause and next step."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.machines.machine_list import known_hosts_file, list_machines, machines_folder
from tests.helpers.small_drive import small_drive
from tests.helpers.ssh_server import SshServer
from tests.runs.machines.conftest import Command


def test_a_machine_is_added_once_its_key_is_confirmed(server: SshServer, command: Command) -> None:
    refused = command("machines", "add", "box", *server.add, code=2)
    fingerprint = next(word for word in refused.split() if word.startswith("SHA256:"))
    assert "The host key is not confirmed" in refused and not machines_folder().exists()
    assert "The host key is another one" in command(
        "machines", "add", "box", *server.add, "--fingerprint", "SHA256:other", code=2
    )
    assert list_machines() == []

    command("machines", "add", "box", *server.add, "--fingerprint", fingerprint)
    (machine,) = list_machines()
    assert (machine.name, machine.fingerprint, machine.identity) == ("box", fingerprint, str(server.key))
    assert server.key.read_text(encoding="utf-8") not in known_hosts_file().read_text(encoding="utf-8")
    assert fingerprint in command("machines")
    assert "already" in command("machines", "add", "Box", *server.add, "--yes", code=2)

    findings = json.loads(command("machines", "check", "box", "--json"))
    assert {"python", "torch"} <= {finding["id"] for finding in findings["findings"]}
    assert findings["devices"][0]["kind"] in ("cpu", "cuda")

    command("machines", "remove", "box")
    assert list_machines() == [] and known_hosts_file().read_text(encoding="utf-8") == ""


def test_failures_have_title_cause_and_next_step(server: SshServer, command: Command, runs_dir: Path) -> None:
    other_key = server.key.with_name("host_key")  # a key that the server does not accept
    add = [str(other_key) if word == str(server.key) else word for word in server.add]
    assert "The machine does not accept your key" in command("machines", "add", "box", *add, "--yes", code=1)
    add = ["python-without-a-file" if word == sys.executable else word for word in server.add]
    assert "Python is missing on the machine" in command("machines", "add", "box", *add, "--yes", code=1)
    for words, title in (
        (["here", *server.add], "Invalid name"),
        (["box", "-oProxyCommand=x"], "Invalid command"),
        (["box", "a b@c"], "Invalid address"),
        (["box", server.address, "--port", "0"], "Invalid request"),
        (["box", server.address, "--identity", f"{server.key}.pub"], "Invalid request"),
        (["box"], "Invalid request"),
    ):
        assert title in command("machines", "add", *words, "--yes", code=2)
    assert "No such machine" in command("machines", "check", "nowhere", code=2)
    assert list_machines() == []

    command("machines", "add", "box", *server.add, "--yes")
    server.stop()
    assert "Nothing listens for SSH" in command("machines", "check", "box", code=1)
    server.change_host_key()
    server.start()
    assert "The host key is not the one that was confirmed" in command("machines", "check", "box", code=1)
    train = ["train", "--machine", "box", "--detach", "--steps", "2"]
    assert "host key" in command(*train, code=1)
    assert list(runs_dir.iterdir()) == []


@pytest.mark.parametrize("shell", ["dash", "fish", "csh", "greeting"])
def test_any_shell_will_do(server: SshServer, command: Command, shell: str) -> None:
    if shell != "greeting" and shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    greeting = 'echo Welcome; echo Notice 1>&2; eval "$SSH_ORIGINAL_COMMAND"'
    server.use_shell(greeting if shell == "greeting" else f'{shell} -c "$SSH_ORIGINAL_COMMAND"')
    assert "Added: box" in command("machines", "add", "box", *server.add, "--yes")


def test_a_key_with_a_passphrase_is_named(
    server: SshServer, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = tmp_path / "key with a passphrase"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "geheim", "-f", key], check=True)
    server.accept(key)
    add = [str(key) if word == str(server.key) else word for word in server.add]
    refused = command("machines", "add", "box", *add, "--yes", code=1)
    assert "The key has a passphrase" in refused and "ssh-add" in refused and list_machines() == []


def test_a_full_disk_there_is_named(server: SshServer, command: Command, runs_dir: Path) -> None:
    with small_drive(server.data, 2):
        command("machines", "add", "box", *server.add, "--yes")
        refused = command("train", "--machine", "box", "--detach", "--steps", "2", code=1)
        assert "The disk there is full" in refused and "Free some space there" in refused
    assert list(runs_dir.iterdir()) == [] and not server.runs.exists()


def test_a_run_that_is_refused_there_leaves_nothing(machine: SshServer, command: Command, runs_dir: Path) -> None:
    train = ["train", "--machine", "box", "--detach"]
    assert "box: There is no file or folder /no/such/corpus" in command(
        *train, "--dataset-file", "there:///no/such/corpus", code=2
    )
    assert "box: There is no device 'cuda:0'" in command(*train, "--devices", "cuda:0", code=2)
    assert "copy of the metrics" in command(*train, "--log-file", "copy.jsonl", code=2)
    assert "a path on another machine" in command("train", "--dataset-file", "there:///data", code=2)
    assert list(runs_dir.iterdir()) == []
    assert not machine.runs.exists()


@pytest.mark.parametrize("text", ["[]", '{"format": "rankdeck-machines", "version": 9}', '{"format": "x"}', "{"])
def test_a_damaged_list_is_named(command: Command, text: str) -> None:
    folder = machines_folder()
    folder.mkdir(parents=True)
    (folder / "machines.json").write_text(text, encoding="utf-8")
    assert "machines.json" in command("machines", code=2)
    assert (folder / "machines.json").read_text(encoding="utf-8") == text
