"""Removal of runs: to the system's recycle bin, which is found where the system has it, or for good."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from core.config import RunConfig
from core.errors import RunBusyError
from core.run_folder.removal import NoRecycleBinError, delete_run, folder_bytes, recycle_run
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, list_runs

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the bin of the person who runs the tests is used")


def ended_run(runs_dir: Path, name: str) -> RunStore:
    store = RunStore.create(runs_dir, RunConfig(), run_dir=runs_dir / name)
    store.write_state(RunState(name, name=name, state="stopped"))
    return store


@LINUX
def test_a_removed_run_is_in_the_recycle_bin(tmp_path: Path, recycle_bin: Path) -> None:
    store = ended_run(tmp_path, "größe 1")
    (store.dir / "model.safetensors").write_bytes(b"x" * 1000)
    recycle_run(store)
    assert list_runs(tmp_path) == []
    assert (recycle_bin / "files" / store.dir.name / "model.safetensors").stat().st_size == 1000
    assert "DeletionDate=" in (recycle_bin / "info" / f"{store.dir.name}.trashinfo").read_text(encoding="utf-8")


@LINUX
def test_a_run_stays_where_no_bin_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a file"))
    store = ended_run(tmp_path, "alpha")
    with pytest.raises(NoRecycleBinError, match="rm --permanently"):
        recycle_run(store)
    assert store.run_toml.is_file()


@pytest.mark.windows
@pytest.mark.parametrize("remove", [recycle_run, delete_run])
def test_a_running_run_stays(tmp_path: Path, remove: object) -> None:
    assert callable(remove)
    store = ended_run(tmp_path, "alpha")
    with store.lock(), pytest.raises(RunBusyError, match="is running"):
        remove(store)
    starting = RunStore.create(tmp_path, RunConfig())
    with pytest.raises(RunBusyError):
        remove(starting)
    assert store.dir.is_dir() and starting.dir.is_dir()


@pytest.mark.windows
def test_a_run_is_deleted_even_of_write_protected_files(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    (store.dir / "model.safetensors").write_bytes(b"x" * 1000)
    (store.dir / "model.safetensors").chmod(stat.S_IREAD)
    ended_run(tmp_path, "beta")
    assert folder_bytes(store.dir) > 1000
    delete_run(store)
    assert [entry.path.name for entry in list_runs(tmp_path)] == ["beta"]
