"""Clean-up of what other computers sent: what a run needs stays, whatever its age; all else goes after an hour."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from core.config.config_file import to_toml
from core.errors import RunBusyError
from core.files.atomic import write_atomic
from core.machines.agent import LINKED_BYTES, FileStore
from core.machines.answers import CleanUp
from core.machines.clean_up import YOUNG_S, clean_up, note_runs_folder
from core.processes import identity
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

LARGE = b"x" * LINKED_BYTES


def send(root: Path, name: str, data: bytes, *, old: bool = True) -> Path:
    """A folder with one file, as it is after it was sent."""
    store, digest = FileStore(root), hashlib.sha256(data).hexdigest()
    store.need([])
    store.put(digest, len(data), 0, [data])
    tree = Path(store.tree(name, [["a.txt", digest, len(data)]])).parent
    if old:
        then = time.time() - YOUNG_S - 60
        for path in (tree, store.files / digest):
            os.utime(path, (then, then))
    return tree


def run_that_needs(place: Path, runs_dir: Path, tree: Path) -> RunStore:
    (place / "text.txt").write_bytes(TEXT)
    store = make_run(place, runs_dir=runs_dir)
    config = store.config().replace(dataset_file=str(tree / "data" / "a.txt"))
    write_atomic(store.run_toml, to_toml(config))
    return store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "machine"


def test_what_no_run_needs_goes(root: Path, tmp_path: Path, runs_dir: Path) -> None:
    needed, large = send(root, "data", b"needed"), send(root, "data", LARGE)
    gone, new = send(root, "data", b"of a run that was deleted"), send(root, "data", b"just sent", old=False)
    run_that_needs(tmp_path, runs_dir, needed)
    store = run_that_needs(tmp_path, tmp_path / "others", large)
    note_runs_folder(root, tmp_path / "others")  # another person's, or another setting's
    note_runs_folder(root, tmp_path / "others")

    freed = CleanUp(1, 1, 2 * len(b"of a run that was deleted"))
    assert clean_up(root, runs_dir, remove=False) == freed and gone.exists()
    assert clean_up(root, runs_dir, remove=True) == freed
    assert not gone.exists() and needed.exists() and large.exists() and new.exists()
    missing = [[hashlib.sha256(data).hexdigest(), len(data)] for data in (b"needed", LARGE, b"just sent")]
    assert FileStore(root).need(missing)["missing"] == {}, "what a run still has need not be sent again"

    (store.dir / "run.toml").rename(store.dir / "gone.toml")
    assert clean_up(root, runs_dir, remove=True) == CleanUp(1, 1, len(LARGE)), "a linked file is counted once"


def test_a_live_run_refuses_it(root: Path, tmp_path: Path, runs_dir: Path) -> None:
    store = run_that_needs(tmp_path, runs_dir, send(root, "data", b"needed"))
    before = store.stored_state()
    store.write_state(before.replace(state="training", host=identity.own()))
    with pytest.raises(RunBusyError, match="is training"):
        clean_up(root, runs_dir, remove=True)
    store.write_state(before)
    assert clean_up(root, runs_dir, remove=True).trees == 0
