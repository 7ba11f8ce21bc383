"""The list of machines: the person's own, whatever the folder of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.machines.machine import Machine
from core.machines.machine_list import keep_machine, list_machines, machines_folder, remove_machine

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
    keep_machine(box)
    assert list(runs_dir.iterdir()) == []
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "others"))
    assert list_machines() == [box]
    remove_machine(box)
    assert list_machines() == []


def test_an_older_list_with_host_keys_is_read() -> None:
    machines_folder().mkdir(parents=True)
    old = '{"name": "box", "address": "me@host", "fingerprint": "SHA256:x"}'
    text = f'{{"format": "rankdeck-machines", "version": 1, "machines": [{old}]}}'
    (machines_folder() / "machines.json").write_text(text, encoding="utf-8")
    assert list_machines() == [Machine("box", "me@host")]
