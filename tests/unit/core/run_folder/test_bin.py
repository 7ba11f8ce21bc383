"""The bin: removed runs can be put back."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.config import RunConfig
from core.errors import RunBusyError, RunNotFoundError
from core.run_folder.bin import binned_runs, empty_bin, folder_bytes, remove_run, restore_run
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, list_runs

pytestmark = pytest.mark.windows


def ended_run(runs_dir: Path, name: str) -> RunStore:
    store = RunStore.create(runs_dir, RunConfig(), run_dir=runs_dir / name)
    store.write_state(RunState(name, name=name, state="stopped"))
    return store


def test_a_removed_run_leaves_the_list_and_comes_back(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    binned = remove_run(store)
    assert list_runs(tmp_path) == [] and not store.dir.exists()
    assert [entry.path for entry in binned_runs(tmp_path)] == [binned]
    assert restore_run(binned) == store.dir
    assert [entry.path for entry in list_runs(tmp_path)] == [store.dir] and binned_runs(tmp_path) == []


def test_names_that_are_taken_get_a_number(tmp_path: Path) -> None:
    first = remove_run(ended_run(tmp_path, "alpha"))
    second = remove_run(ended_run(tmp_path, "alpha"))
    assert (first.name, second.name) == ("alpha", "alpha-2")
    ended_run(tmp_path, "alpha")
    assert restore_run(first).name == "alpha-2"


def test_a_running_run_stays(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    with store.lock(), pytest.raises(RunBusyError, match="is running"):
        remove_run(store)
    starting = RunStore.create(tmp_path, RunConfig())
    with pytest.raises(RunBusyError):
        remove_run(starting)
    assert store.dir.is_dir() and starting.dir.is_dir()


def test_only_what_is_in_a_bin_is_put_back(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    for path in (store.dir, tmp_path / ".bin" / "gone"):
        with pytest.raises(RunNotFoundError):
            restore_run(path)


def test_the_bin_is_emptied_for_good_even_of_write_protected_files(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    (store.dir / "model.safetensors").write_bytes(b"x" * 1000)
    (store.dir / "model.safetensors").chmod(stat.S_IREAD)
    ended_run(tmp_path, "beta")
    assert folder_bytes(store.dir) > 1000
    remove_run(store)
    assert empty_bin(tmp_path) == 1
    assert binned_runs(tmp_path) == [] and not (tmp_path / ".bin" / "alpha").exists()
    assert [entry.path.name for entry in list_runs(tmp_path)] == ["beta"]
