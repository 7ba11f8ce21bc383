"""Clean-up of what other computers sent: what a run needs stays, whatever its age; all else goes after an hour."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.config.config_file import to_toml
from core.errors import RunBusyError
from core.files.atomic import write_atomic
from core.machines.agent import LINKED_BYTES, FileStore, hold_connection, others_connected
from core.machines.clean_up import YOUNG_S, find_unneeded, note_runs_folder, remove
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

    found = find_unneeded(root, runs_dir)
    assert found.trees == (gone,) and [path.name for path in found.files] == [
        hashlib.sha256(b"of a run that was deleted").hexdigest()
    ]
    assert found.freed_bytes == 2 * len(b"of a run that was deleted") and gone.exists()
    assert found.kept_bytes == 2 * len(b"needed") + len(LARGE) + 2 * len(b"just sent")
    remove(found)
    assert not gone.exists() and needed.exists() and large.exists() and new.exists()
    missing = [[hashlib.sha256(data).hexdigest(), len(data)] for data in (b"needed", LARGE, b"just sent")]
    assert FileStore(root).need(missing)["missing"] == {}, "what a run still has need not be sent again"

    (store.dir / "run.toml").rename(store.dir / "gone.toml")
    found = find_unneeded(root, runs_dir)
    assert found.trees == (large,) and found.freed_bytes == len(LARGE), "a linked file is counted once"


def test_a_live_run_and_another_connection_refuse_it(root: Path, tmp_path: Path, runs_dir: Path) -> None:
    store = run_that_needs(tmp_path, runs_dir, send(root, "data", b"needed"))
    before = store.stored_state()
    store.write_state(before.replace(state="training", host=identity.own()))
    with pytest.raises(RunBusyError, match="is training"):
        find_unneeded(root, runs_dir)
    store.write_state(before)
    code = (
        "import sys; from pathlib import Path; from core.machines.agent import hold_connection\n"
        "file = hold_connection(Path(sys.argv[1])); print('there', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline().strip() == b"there"
        with pytest.raises(RunBusyError, match="Another connection"):
            find_unneeded(root, runs_dir)
        other.kill()
    assert find_unneeded(root, runs_dir).trees == ()


def test_a_connection_does_not_see_itself(root: Path) -> None:
    assert not others_connected(root)
    with hold_connection(root):
        assert not others_connected(root)
