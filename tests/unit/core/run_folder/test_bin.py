"""The bin: removed runs can be put back."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from core.config import RunConfig
from core.errors import RunBusyError, RunNotFoundError, UsageError
from core.run_folder.bin import delete_binned, find_binned, folder_bytes, list_bin, remove_run, restore_run
from core.run_folder.notes import RunNotes, write_notes
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
    assert [run.path for run in list_bin(tmp_path)] == [binned]
    assert restore_run(binned) == store.dir
    assert [entry.path for entry in list_runs(tmp_path)] == [store.dir] and list_bin(tmp_path) == []


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
    assert delete_binned(run.path for run in list_bin(tmp_path)) == 1
    assert list_bin(tmp_path) == [] and not (tmp_path / ".bin" / "alpha").exists()
    assert [entry.path.name for entry in list_runs(tmp_path)] == ["beta"]


def test_the_bin_is_listed_by_the_time_of_removal(tmp_path: Path) -> None:
    stores = [ended_run(tmp_path, name) for name in ("alpha", "beta")]
    write_notes(stores[0].dir, RunNotes(name="the good one"))
    os.utime(stores[1].dir, (1000.0, 1000.0))  # it was last changed long before it is removed
    first, second = remove_run(stores[1]), remove_run(stores[0])
    os.utime(second, (time.time() + 60,) * 2)
    runs = list_bin(tmp_path)
    assert [(run.path, run.label) for run in runs] == [(second, "the good one"), (first, "beta")]
    assert runs[1].removed > 1e9


def test_what_a_failed_deletion_left_is_listed_and_can_be_deleted(tmp_path: Path) -> None:
    binned = remove_run(ended_run(tmp_path, "alpha"))
    for name in ("state.json", "run.toml"):
        (binned / name).unlink()
    (run,) = list_bin(tmp_path)
    assert (run.label, run.record.entry.state) == ("alpha", None)
    assert delete_binned([run.path]) == 1 and list_bin(tmp_path) == []


def test_a_removed_run_is_found_by_id_name_and_start_of_its_id(tmp_path: Path) -> None:
    for name in ("alpha", "alpine", "beta"):
        store = ended_run(tmp_path, name)
        write_notes(store.dir, RunNotes(name="beta" if name == "alpha" else ""))
        remove_run(store)
    bin_dir = tmp_path / ".bin"
    assert find_binned(tmp_path, "beta") == bin_dir / "beta"  # the id goes before a name
    assert find_binned(tmp_path, "alpi") == bin_dir / "alpine"
    with pytest.raises(UsageError, match="2 runs"):
        find_binned(tmp_path, "alp")
    for text in ("", "gamma"):
        with pytest.raises(RunNotFoundError, match="in the bin"):
            find_binned(tmp_path, text)


def test_only_what_is_in_a_bin_is_deleted(tmp_path: Path) -> None:
    store = ended_run(tmp_path, "alpha")
    with pytest.raises(RunNotFoundError):
        delete_binned([store.dir])
    assert store.dir.is_dir()
