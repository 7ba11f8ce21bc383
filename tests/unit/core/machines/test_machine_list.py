"""The list of machines: the person's own, whatever the folder of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.machines.machine import Machine
from core.machines.machine_list import (
    keep_host_key,
    keep_machine,
    known_hosts_file,
    list_machines,
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
    remove_machine(box)
    assert list_machines() == [] and known_hosts_file().read_text(encoding="utf-8") == ""
