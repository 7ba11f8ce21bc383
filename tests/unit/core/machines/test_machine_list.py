"""The list of machines: the person's own, whatever the folder of runs; that of 0.1 is read and taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.machines.machine import Machine
from core.machines.machine_list import (
    keep_host_key,
    keep_machine,
    known_hosts_file,
    list_machines,
    machines_folder,
    remove_machine,
)

pytestmark = [pytest.mark.windows]


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "Eigenes"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Eigenes"))
    monkeypatch.setattr("core.machines.machine_list.data_folder", lambda: tmp_path / "Eigenes" / "rankdeck")


def test_another_folder_of_runs_has_the_same_machines(
    runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Machine("box", "me@host")
    keep_host_key(box, f"{box.host_key_name} ssh-ed25519 AAAA")
    keep_machine(box)
    assert list(runs_dir.iterdir()) == []
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "others"))
    assert list_machines() == [box] and known_hosts_file().read_text(encoding="utf-8").startswith("rankdeck-box ")


def test_the_list_of_an_older_version_is_read_and_taken_over(runs_dir: Path) -> None:
    old = runs_dir / "machines"
    old.mkdir()
    values = {"format": "rankdeck-machines", "version": 1, "machines": [{"name": "box", "address": "me@host"}]}
    (old / "machines.json").write_text(json.dumps(values), encoding="utf-8")
    (old / "known_hosts").write_text("rankdeck-box ssh-ed25519 AAAA\n", encoding="utf-8")
    assert [machine.name for machine in list_machines()] == ["box"]
    assert known_hosts_file() == old / "known_hosts" and not machines_folder().exists()

    other = Machine("other", "me@other")
    keep_host_key(other, f"{other.host_key_name} ssh-ed25519 BBBB")
    keep_machine(other)
    assert [machine.name for machine in list_machines()] == ["box", "other"]
    assert known_hosts_file() == machines_folder() / "known_hosts"
    assert known_hosts_file().read_text(encoding="utf-8").count("\n") == 2
    for machine in list_machines():
        remove_machine(machine)
    assert list_machines() == [], "the old list does not come back"
