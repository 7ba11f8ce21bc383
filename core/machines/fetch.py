"""Fetching: brings checkpoints of a run here from the machine that it is on, by their manifests' hashes.

A file that is here with the right hash is not fetched again, one that was cut is continued, and the manifest is written
last: until then there is no checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import MANIFEST, CheckpointStore
from core.errors import RankdeckError, StateFileError, UsageError
from core.files.atomic import explained, replace_with_retry, sha256_file, write_atomic
from core.formatting import byte_size
from core.held_files import open_binary
from core.machines.agent import checked_path
from core.machines.run_stream import MODEL
from core.machines.send import Report
from core.machines.session import Session
from core.paths import CHECKPOINTS
from core.run_folder.remote_run import RemoteRun
from core.run_folder.store import RunStore

PART: Final = ".rankdeck-part"


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
        RankdeckError: The connection broke, or a disk refuses.
    """
    found = session.ask({"op": "checkpoints", "run_dir": remote.run_dir})["checkpoints"]
    chosen = _chosen(found, asked, session.machine.name)
    if chosen is None:
        return None
    number, folder = int(chosen["number"]), store.checkpoints / str(int(chosen["number"]))
    if _is_here(store, number):
        return number
    size = sum(int(file[1]) for file in chosen["files"])
    report.say(f"Fetches checkpoint {number} ({byte_size(size)}) from {session.machine.name}.")
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    place = f"{chosen['folder'] if chosen['folder'] != CHECKPOINTS else CHECKPOINTS}/{number}"
    done = 0

    def arrived(count: int) -> None:
        nonlocal done
        done += count
        report.progress(f"Fetching checkpoint {number}: {byte_size(done)} of {byte_size(size)}")

    for name, file_size, digest in chosen["files"]:
        path = folder / checked_path(str(name))[0]
        _fetch_file(session, remote, f"{place}/{name}", path, (int(file_size), str(digest)), arrived)
    _fetch_manifest(session, remote, f"{place}/{MANIFEST}", folder / MANIFEST)
    CheckpointStore(store.checkpoints).verify(number)
    return number


def fetch_model(session: Session, store: RunStore, remote: RemoteRun, report: Report) -> bool:
    """Brings the model of a run that has ended here; whether there is one. Raises as `fetch_checkpoint`."""
    size = session.ask({"op": "checkpoints", "run_dir": remote.run_dir})["model_bytes"]
    if size is None:
        return False
    report.say(f"Fetches {MODEL} ({byte_size(int(size))}) from {session.machine.name}.")
    _fetch_file(session, remote, MODEL, store.model, (int(size), ""), lambda _: None)
    return True


def _chosen(found: list[dict[str, Any]], asked: str | None, machine: str) -> Mapping[str, Any] | None:
    if asked is None:
        return next((one for one in reversed(found) if not one["diverged"]), None)
    for one in found:
        if str(one["number"]) == asked.strip():
            return one
    numbers = ", ".join(str(one["number"]) for one in found) or "none"
    raise UsageError(f"There is no checkpoint {asked!r:.40} on {machine}; it has: {numbers}.", "Choose one of them.")


def _is_here(store: RunStore, number: int) -> bool:
    try:
        CheckpointStore(store.checkpoints).verify(number)
    except StateFileError:
        return False
    return True


def _fetch_file(
    session: Session, remote: RemoteRun, there: str, path: Path, wanted: tuple[int, str], arrived: Callable[[int], None]
) -> None:
    size, digest = wanted
    if digest and path.is_file() and path.stat().st_size == size and sha256_file(path) == digest:
        arrived(size)
        return
    part = path.with_name(path.name + PART)
    offset = part.stat().st_size if digest and part.is_file() and part.stat().st_size <= size else 0
    arrived(offset)
    with explained(f"{part} could not be written"), open_binary(part, "ab" if offset else "wb") as file:
        request = {"op": "get", "run_dir": remote.run_dir, "path": there, "offset": offset}
        for frame in session.stream(request):
            for block in session.bytes_of(frame):
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


def _fetch_manifest(session: Session, remote: RemoteRun, there: str, path: Path) -> None:
    data = b""
    for frame in session.stream({"op": "get", "run_dir": remote.run_dir, "path": there, "offset": 0}):
        data += b"".join(session.bytes_of(frame))
    write_atomic(path, data)
