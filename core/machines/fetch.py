"""Fetching: brings checkpoints of a run here from the machine that it is on, by their manifests' hashes.

What the run keeps of its base model comes along, so that it can be resumed. A manifest is read first: only a
checkpoint's own names are fetched, each as long as the manifest says and no longer, if the disk has room for all of
them. A file that is here with the right hash is not fetched again, one that was cut is continued, and the manifest is
written last: until then there is no checkpoint.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from core.checkpoints.store import MANIFEST, CheckpointStore, read_manifest
from core.errors import RankdeckError, StateFileError, UsageError
from core.files.atomic import explained, replace_with_retry, sha256_file, write_atomic
from core.files.links import append_unlinked, refuse_link
from core.formatting import byte_size
from core.machines.answers import Block, Checkpoints, KeptFile, ThereCheckpoint, unreadable
from core.machines.run_copy import check_room
from core.machines.run_stream import KEPT, MODEL
from core.machines.send import Report
from core.machines.session import Session
from core.run_folder.remote_run import RemoteRun
from core.run_folder.store import RunStore

PART: Final = ".rankdeck-part"
_MANIFEST_BYTES: Final = 8 << 20
# What a checkpoint's files are called.
_FILE: Final = re.compile(
    r"(?:weights|optimizer|exchange|outer|merged|average|rank)\d{0,6}(?:_(?:shard|rank)\d{1,6})?\.safetensors"
    r"|script_rank\d{1,6}\.json|chunk_tracker_state\.json",
    re.ASCII,
)
_LEAST_BLOCK: Final = 4096
_SMALL_BLOCKS: Final = 1000


def fetch_checkpoint(
    session: Session, store: RunStore, remote: RemoteRun, asked: str | None, report: Report
) -> int | None:
    """Brings one checkpoint here.

    Args:
        session: The machine that has it.
        store: The run here.
        remote: The run there.
        asked: The number of the one that is wanted; None: the newest whose weights are finite.
        report: Hears of it.

    Returns:
        Its number; None where there is none.

    Raises:
        UsageError: There is no checkpoint of that number.
        ProtocolError: What it names does not belong to a checkpoint.
        RankdeckError: The connection broke, or a disk refuses.
    """
    there = session.ask({"op": "checkpoints", "run_dir": remote.run_dir}, Checkpoints)
    _fetch_kept(session, store, remote, there.kept)
    chosen = _chosen(there.checkpoints, asked, session.machine.name)
    if chosen is None:
        return None
    number, folder = chosen.number, store.checkpoints / str(chosen.number)
    if _is_here(store, number):
        return number
    place = f"{chosen.folder}/{number}"
    manifest = b"".join(_blocks(session, remote, f"{place}/{MANIFEST}", 0, _MANIFEST_BYTES))
    try:
        files = read_manifest(manifest, number, folder).files
    except StateFileError as error:
        raise unreadable(session.machine, error.cause) from None
    wrong = next((file.name for file in files if not _FILE.fullmatch(file.name) or file.size < 0), None)
    if wrong is not None:
        raise unreadable(session.machine, f"{wrong!r:.80} is not a file of a checkpoint")
    size = sum(file.size for file in files)
    report.say(f"Fetches checkpoint {number} ({byte_size(size)}) from {session.machine.name}.")
    refuse_link(store.checkpoints)
    refuse_link(folder)
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    check_room(folder, size - sum(_here_bytes(folder / file.name) for file in files))
    done = 0

    def arrived(count: int) -> None:
        nonlocal done
        done += count
        report.progress(f"Fetching checkpoint {number}: {byte_size(done)} of {byte_size(size)}")

    for file in files:
        _fetch_file(session, remote, f"{place}/{file.name}", folder / file.name, (file.size, file.sha256), arrived)
    write_atomic(folder / MANIFEST, manifest)
    CheckpointStore(store.checkpoints).verify(number)
    return number


def _fetch_kept(session: Session, store: RunStore, remote: RemoteRun, kept: Sequence[KeptFile]) -> None:
    """Fetches the missing files that a run keeps of its base model, and no other offered file."""
    for file in kept:
        if not KEPT.fullmatch(file.path):
            raise unreadable(session.machine, f"{file.path!r:.80} is not a file of a base model")
    missing = [file for file in kept if not (store.dir / file.path).exists()]
    check_room(store.dir, sum(file.size for file in missing))
    for file in missing:
        path = store.dir / file.path
        for folder in (store.data, path.parent):
            refuse_link(folder)
        refuse_link(path)
        with explained(f"{path.parent} could not be made"):
            path.parent.mkdir(parents=True, exist_ok=True)
        _fetch_file(session, remote, file.path, path, (file.size, file.sha256), lambda _: None)


def fetch_model(session: Session, store: RunStore, remote: RemoteRun, report: Report) -> bool:
    """Brings the model of a run that has ended here; whether there is one. Raises as `fetch_checkpoint`."""
    size = session.ask({"op": "checkpoints", "run_dir": remote.run_dir}, Checkpoints).model_bytes
    if size is None:
        return False
    report.say(f"Fetches {MODEL} ({byte_size(size)}) from {session.machine.name}.")
    check_room(store.dir, size)
    _fetch_file(session, remote, MODEL, store.model, (size, ""), lambda _: None)
    return True


def _chosen(found: Sequence[ThereCheckpoint], asked: str | None, machine: str) -> ThereCheckpoint | None:
    if asked is None:
        return next((one for one in reversed(found) if not one.diverged), None)
    for one in found:
        if str(one.number) == asked.strip():
            return one
    numbers = ", ".join(str(one.number) for one in found) or "none"
    raise UsageError(f"There is no checkpoint {asked!r:.40} on {machine}; it has: {numbers}.", "Choose one of them.")


def _is_here(store: RunStore, number: int) -> bool:
    try:
        CheckpointStore(store.checkpoints).verify(number)
    except StateFileError:
        return False
    return True


def _here_bytes(path: Path) -> int:
    """How much of a file need not be fetched any more."""
    for there in (path, path.with_name(path.name + PART)):
        with contextlib.suppress(OSError):
            return there.stat().st_size
    return 0


def _fetch_file(
    session: Session, remote: RemoteRun, there: str, path: Path, wanted: tuple[int, str], arrived: Callable[[int], None]
) -> None:
    size, digest = wanted
    if digest and path.is_file() and path.stat().st_size == size and sha256_file(path) == digest:
        arrived(size)
        return
    part = path.with_name(path.name + PART)
    refuse_link(part)
    offset = part.stat().st_size if digest and part.is_file() and part.stat().st_size <= size else 0
    arrived(offset)
    if not offset:
        part.unlink(missing_ok=True)
    with explained(f"{part} could not be written"), append_unlinked(part) as file:
        for block in _blocks(session, remote, there, offset, size - offset):
            file.write(block)
            arrived(len(block))
    if part.stat().st_size != size or (digest and sha256_file(part) != digest):
        with contextlib.suppress(OSError):
            part.unlink()
        raise RankdeckError(
            f"{path.name} arrived from {session.machine.name} with other content than its manifest says.",
            "Try again. If it happens again, that checkpoint is damaged there: choose another one.",
            title="A file arrived damaged",
        )
    replace_with_retry(part, path)


def _blocks(session: Session, remote: RemoteRun, there: str, offset: int, most: int) -> Iterator[bytes]:
    """The bytes of a file there, of which no more are taken than it may have."""
    left = most
    request = {"op": "get", "run_dir": remote.run_dir, "path": there, "offset": offset}
    for frame in session.stream(request, Block, most=most // _LEAST_BLOCK + _SMALL_BLOCKS):
        left -= frame.bytes
        if left < 0:
            raise unreadable(session.machine, f"{there} has more than the {most:,} bytes that were announced")
        yield from session.bytes_of(frame.bytes)
