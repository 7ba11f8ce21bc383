"""The agent's file store: files by their hash, continued, checked, and never outside of their folder."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.machines.agent import FileStore, Frames, Refusal, checked_path
from tests.helpers.held_file import WINDOWS_ONLY, hold_for

pytestmark = pytest.mark.windows

DATA = b"some bytes that are sent"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def test_a_file_is_continued_where_it_was_cut(store: FileStore, tmp_path: Path) -> None:
    assert store.need([[DIGEST, len(DATA)]])["missing"] == {DIGEST: 0}
    store.put(DIGEST, len(DATA), 0, [DATA[:10]])
    assert store.need([[DIGEST, len(DATA)]])["missing"] == {DIGEST: 10}
    store.put(DIGEST, len(DATA), 10, [DATA[10:]])
    assert store.need([[DIGEST, len(DATA)]])["missing"] == {}
    folder = Path(store.tree("mine ü", [["a/b.txt", DIGEST, len(DATA)]]))
    assert (folder / "a" / "b.txt").read_bytes() == DATA and tmp_path in folder.parents
    assert store.tree("mine ü", [["a/b.txt", DIGEST, len(DATA)]]) == str(folder)


@WINDOWS_ONLY
def test_a_file_that_a_scanner_holds_is_replaced_when_it_lets_go(store: FileStore, tmp_path: Path) -> None:
    store.need([])
    store.put(DIGEST, len(DATA), 0, [DATA])
    target = tmp_path / "runs" / "state.json"
    target.parent.mkdir()
    target.write_bytes(b"before")
    timer = hold_for(target, 0.5)
    store.place(DIGEST, len(DATA), target)
    timer.join()
    assert target.read_bytes() == DATA


def test_what_arrives_damaged_is_not_kept(store: FileStore) -> None:
    store.need([])
    with pytest.raises(Refusal, match="does not have the hash"):
        store.put(DIGEST, len(DATA), 0, [b"x" * len(DATA)])
    assert store.need([[DIGEST, len(DATA)]])["missing"] == {DIGEST: 0}
    with pytest.raises(Refusal, match="less of it"):
        store.put(DIGEST, len(DATA), 7, [b"x"])


def test_two_connections_send_the_same_file(store: FileStore) -> None:
    store.need([])

    def blocks() -> Iterator[bytes]:
        yield DATA[:5]
        second.start()
        yield DATA[5:12]  # and then this connection breaks

    second = threading.Thread(target=store.put, args=(DIGEST, len(DATA), 0, [DATA[:9], DATA[9:15], DATA[15:]]))
    store.put(DIGEST, len(DATA), 0, blocks())
    second.join(20)
    assert store.need([[DIGEST, len(DATA)]])["missing"] == {}


def test_many_connections_send_the_same_files(store: FileStore) -> None:
    files = [(hashlib.sha256(data).hexdigest(), data) for data in (bytes([n]) * 5000 for n in range(40))]
    store.need([])
    failed: list[BaseException] = []

    def send() -> None:
        try:
            for digest, data in files:
                offset = store.need([[digest, 5000]])["missing"].get(digest)
                if offset is not None:
                    store.put(digest, 5000, offset, [data[offset : offset + 2000], data[offset + 2000 :]])
        except (OSError, Refusal) as error:
            failed.append(error)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == [] and store.need([[digest, 5000] for digest, _ in files])["missing"] == {}


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "a//b", "a\\b", "C:/x", "a/.", "a\0b"])
def test_a_path_stays_in_its_folder(path: str) -> None:
    with pytest.raises(Refusal):
        checked_path(path)


@pytest.mark.parametrize("digest", ["", "../../x", "A" * 64, "g" * 64])
def test_a_hash_is_a_hash(store: FileStore, digest: str) -> None:
    with pytest.raises(Refusal):
        store.need([[digest, 1]])


def test_frames_carry_bytes() -> None:
    stream = io.BytesIO()
    Frames(stream, stream).send({"a": "ü"}, b"\n\n\0")
    stream.seek(0)
    frames = Frames(stream, stream)
    frame = frames.receive()
    assert frame == {"a": "ü", "bytes": 3} and b"".join(frames.blocks(3)) == b"\n\n\0"
    assert frames.receive() is None
