"""Fetching: brings files of a run here from the machine that it is on, by their hashes.

A checkpoint's manifest is read first: only a checkpoint's own names are fetched, each as long as the manifest says and
no longer, if the disk has room for all of them. A file that is here with the right hash is not fetched again, one that
was cut is continued, and the manifest is written last: until then there is no checkpoint.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from core.checkpoints.store import MANIFEST, CheckpointStore, read_manifest
from core.errors import RankdeckError, StateFileError
from core.files.atomic import explained, replace_with_retry, sha256_file, write_atomic
from core.files.links import append_unlinked, refuse_link
from core.formatting import byte_size
from core.machines.answers import Block, RunFiles, ThereFile, unreadable
from core.machines.machine import Report
from core.machines.run_copy import check_room
from core.machines.run_files import KEPT, MODEL
from core.machines.session import Session
from core.paths import CHECKPOINTS
from core.run_folder.remote_run import RemoteRun
from core.run_folder.store import RunStore

PART: Final = ".rankdeck-part"
_LIST_LIMIT_S: Final = 300.0  # the model is read for its hash
_MANIFEST_BYTES: Final = 8 << 20
# Names of a checkpoint's files.
_FILE: Final = re.compile(
    r"(?:weights|optimizer|exchange|outer|merged|average|rank)\d{0,6}(?:_(?:shard|rank)\d{1,6})?\.safetensors"
    r"|script_rank\d{1,6}\.json|chunk_tracker_state\.json",
    re.ASCII,
)
_LEAST_BLOCK: Final = 4096
_SMALL_BLOCKS: Final = 1000


class Fetching:
    """Fetches files of one run over a session.

    Args:
        session: The machine that has the run.
        store: The run here.
        remote: The run there.
        report: Receives the progress.
    """

    def __init__(self, session: Session, store: RunStore, remote: RemoteRun, report: Report) -> None:
        self._session, self._store, self._remote, self._report = session, store, remote, report
        self._done = self._size = 0

    def fetch(self, asked: str | None, *, with_model: bool = False) -> tuple[int | None, bool]:
        """Bring a checkpoint here, what the run keeps of its base model, and its own model if asked for.

        Args:
            asked: The number of a checkpoint; None: the newest whose weights are finite.
            with_model: Fetch the model of a run that has ended.

        Returns:
            The checkpoint's number, None where there is none; and whether the model is here.

        Raises:
            ProtocolError: The machine offers a file that does not belong to a run.
            RankdeckError: There is no such checkpoint, the connection broke, or a disk refuses.
        """
        request = {"op": "files", "run_dir": self._remote.run_dir, "checkpoint": asked, "model": with_model}
        there = self._session.ask(request, RunFiles, _LIST_LIMIT_S)
        if asked is not None and str(there.checkpoint) != asked:
            raise unreadable(self._session.machine, f"checkpoint {there.checkpoint}, not {asked:.40}")
        models = [] if there.model is None else [there.model]
        for file in (*there.kept, *models):
            if not KEPT.fullmatch(file.path) and not (with_model and file.path == MODEL):
                raise unreadable(self._session.machine, f"{file.path!r:.80} is not a file of a base model")
        # Of a base model never what is here already: it could have been replaced there.
        missing = [file for file in there.kept if not (self._store.dir / file.path).exists()]
        self._fetch_files(self._store.dir, [*missing, *models], "")
        if there.checkpoint is not None:
            self._fetch_checkpoint(there.checkpoint)
        return there.checkpoint, bool(models)

    def _fetch_checkpoint(self, number: int) -> None:
        checkpoints = CheckpointStore(self._store.checkpoints)
        with contextlib.suppress(StateFileError):
            checkpoints.verify(number)
            return  # it is here
        folder, place = self._store.checkpoints / str(number), f"{CHECKPOINTS}/{number}/"
        manifest = b"".join(self._blocks(place + MANIFEST, 0, _MANIFEST_BYTES))
        try:
            files = read_manifest(manifest, number, folder).files
        except StateFileError as error:
            raise unreadable(self._session.machine, error.cause) from None
        wrong = next((file.name for file in files if not _FILE.fullmatch(file.name) or file.size < 0), None)
        if wrong is not None:
            raise unreadable(self._session.machine, f"{wrong!r:.80} is not a file of a checkpoint")
        self._fetch_files(folder, [ThereFile(file.name, file.size, file.sha256) for file in files], place)
        write_atomic(folder / MANIFEST, manifest)
        checkpoints.verify(number)

    def _fetch_files(self, folder: Path, files: Sequence[ThereFile], place: str) -> None:
        """Fetch files into a folder here; `place` is that folder there, as the beginning of a path."""
        self._done, self._size = 0, sum(file.size for file in files)
        here = sum(_here_bytes(folder / file.path) for file in files)
        check_room(self._store.dir, max(0, self._size - here))
        for file in files:
            path = folder / file.path
            for parent in [*path.relative_to(self._store.dir).parents][:-1]:
                refuse_link(self._store.dir / parent)
            refuse_link(path)
            with explained(f"{path.parent} could not be made"):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._fetch_file(file, path, place + file.path)

    def _fetch_file(self, file: ThereFile, path: Path, there: str) -> None:
        if path.is_file() and path.stat().st_size == file.size and sha256_file(path) == file.sha256:
            self._arrived(file.size)
            return
        part = path.with_name(path.name + PART)
        refuse_link(part)
        offset = part.stat().st_size if part.is_file() and part.stat().st_size <= file.size else 0
        self._arrived(offset)
        if not offset:
            part.unlink(missing_ok=True)
        with explained(f"{part} could not be written"), append_unlinked(part) as target:
            for block in self._blocks(there, offset, file.size - offset):
                target.write(block)
                self._arrived(len(block))
        if part.stat().st_size != file.size or sha256_file(part) != file.sha256:
            with contextlib.suppress(OSError):
                part.unlink()
            raise RankdeckError(
                f"{path.name} arrived from {self._session.machine.name} with other content than was announced.",
                "Try again. If it happens again, that checkpoint is damaged there: choose another one.",
                title="A file arrived damaged",
            )
        replace_with_retry(part, path)

    def _blocks(self, there: str, offset: int, most: int) -> Iterator[bytes]:
        """The bytes of a file there, of which no more are taken than it may have."""
        left = most
        request = {"op": "get", "run_dir": self._remote.run_dir, "path": there, "offset": offset}
        for frame in self._session.stream(request, Block, most=most // _LEAST_BLOCK + _SMALL_BLOCKS):
            left -= frame.bytes
            if left < 0:
                raise unreadable(self._session.machine, f"{there} has more than the {most:,} bytes that were announced")
            yield from self._session.bytes_of(frame.bytes)

    def _arrived(self, count: int) -> None:
        self._done += count
        self._report(f"Fetching from {self._session.machine.name}: {byte_size(self._done)} of {byte_size(self._size)}")


def _here_bytes(path: Path) -> int:
    """The number of a file's bytes that need not be fetched any more."""
    for there in (path, path.with_name(path.name + PART)):
        with contextlib.suppress(OSError):
            return there.stat().st_size
    return 0
