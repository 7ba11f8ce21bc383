"""Notes of live runs: read while their host lives, taken away when it is gone, and never in the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.cli.entry import main
from core.paths import data_folder
from core.processes.identity import own
from core.run_folder.live_runs import FOLDER, live_run_dirs, noted_as_live
from tests.helpers.made_runs import make_run


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))


def test_a_run_is_noted_while_its_host_lives(tmp_path: Path) -> None:
    assert live_run_dirs() == []
    with noted_as_live(tmp_path / "Läufe" / "a"):
        assert live_run_dirs() == [tmp_path / "Läufe" / "a"]
    assert live_run_dirs() == [] and list((data_folder() / FOLDER).iterdir()) == []


def test_the_note_of_a_killed_host_is_taken_away(tmp_path: Path) -> None:
    folder = data_folder() / FOLDER
    folder.mkdir(parents=True)
    dead = {"run_dir": str(tmp_path), "pid": os.getpid(), "started": own().started - 3600}
    for name, text in {"dead": json.dumps(dead), "cut": '{"run_dir', "list": "[]", "empty": ""}.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    assert live_run_dirs() == [] and list(folder.iterdir()) == []


def test_a_disk_that_refuses_costs_only_the_note(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way", encoding="utf-8")
    with noted_as_live(tmp_path):
        assert live_run_dirs() == []


@pytest.mark.usefixtures("runs_dir")
def test_live_runs_of_other_folders_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_bytes(b"some text\n" * 9000)
    run = make_run(tmp_path, runs_dir=tmp_path / "other drive")
    run.write_state(run.stored_state().replace(state="training", host=own()))
    assert main(["runs", "--live", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    with noted_as_live(run.dir):
        assert main(["runs", "--live", "--json"]) == 0
    assert [Path(entry["path"]) for entry in json.loads(capsys.readouterr().out)] == [run.dir]
