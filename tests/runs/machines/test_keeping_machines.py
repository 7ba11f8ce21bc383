"""Machines: added, checked, removed; and every failure with title, cause and next step."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from core.machines.machine_list import list_machines, machines_folder
from tests.helpers.small_drive import small_drive
from tests.helpers.ssh_server import SshServer
from tests.runs.machines.conftest import Command


def test_a_machine_is_added_checked_and_removed(server: SshServer, command: Command) -> None:
    command("machines", "add", "box", *server.add)
    (machine,) = list_machines()
    assert (machine.name, machine.port, machine.identity) == ("box", server.port, str(server.key))
    assert server.address in command("machines")
    assert "already" in command("machines", "add", "Box", *server.add, code=2)

    checked = command("machines", "check", "box")
    assert "Python: " in checked and "PyTorch: " in checked and ("cpu:0" in checked or "cuda:0" in checked)
    found = json.loads(command("machines", "check", "box", "--json").splitlines()[0])
    assert found["devices"][0]["kind"] in ("cpu", "cuda") and found["doctor"]

    assert "So do the copies of its runs here" in command("machines", "remove", "box")
    assert list_machines() == []


def test_failures_have_title_cause_and_next_step(server: SshServer, command: Command, runs_dir: Path) -> None:
    other_key = server.key.with_name("host_key")  # a key that the server does not accept
    add = [str(other_key) if word == str(server.key) else word for word in server.add]
    assert "The machine does not accept your key" in command("machines", "add", "box", *add, code=1)
    add = ["python-without-a-file" if word == sys.executable else word for word in server.add]
    assert "Python is missing on the machine" in command("machines", "add", "box", *add, code=1)
    for words, title in (
        (["here", *server.add], "Invalid name"),
        (["box", "-oProxyCommand=x"], "Invalid command"),
        (["box", "a b@c"], "Invalid address"),
        (["box", server.address, "--port", "0"], "Invalid request"),
        (["box", server.address, "--port", "ssh"], "Invalid command"),
        (["box", server.address, "--identity", f"{server.key}.pub"], "Invalid request"),
        (["box"], "Invalid request"),
    ):
        assert title in command("machines", "add", *words, code=2)
    assert "No such machine" in command("machines", "check", "nowhere", code=2)
    assert list_machines() == []

    command("machines", "add", "box", *server.add)
    server.stop()
    assert "Connection refused" in command("machines", "check", "box", code=1)
    server.change_host_key()
    server.start()
    assert "The host key has changed" in command("machines", "check", "box", code=1)
    server.forget_host_key()
    printed = command("machines", "check", "box", code=1)
    assert "The host key is not known" in printed and f"ssh -p {server.port} {server.address}" in printed
    train = ["train", "--machine", "box", "--detach", "--steps", "2"]
    assert "host key" in command(*train, code=1)
    assert list(runs_dir.iterdir()) == []


@pytest.mark.parametrize("shell", ["dash", "fish", "csh", "greeting"])
def test_any_shell_will_do(server: SshServer, command: Command, shell: str) -> None:
    if shell != "greeting" and shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    greeting = 'echo Welcome; echo Notice 1>&2; eval "$SSH_ORIGINAL_COMMAND"'
    server.use_shell(greeting if shell == "greeting" else f'{shell} -c "$SSH_ORIGINAL_COMMAND"')
    assert "Added: box" in command("machines", "add", "box", *server.add)


def test_a_full_disk_there_is_named(server: SshServer, command: Command, runs_dir: Path) -> None:
    with small_drive(server.data, 2):
        command("machines", "add", "box", *server.add)
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
