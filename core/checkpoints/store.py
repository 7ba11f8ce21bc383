"""Checkpoints: weights, optimizer, random state, data position and ledger, committed as one.

A checkpoint is a folder `checkpoints/<n>/`. Its `manifest.json`, written last and in one piece, makes it exist: before
that it is a leftover which the next start removes. The manifest has size and SHA-256 of every file, so that a disk's
fault is found before it is trained on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import NewerVersionError, StateFileError
from core.fault_points import reach
from core.files.atomic import explain, explained, read_json, require_format, sha256_file, sync_folder, write_atomic
from core.held_files import rename
from core.parsing import ParseError, parse_json
from core.protocol.messages import CommitStaged, Position, StagedFile
from core.records import RecordError, Whole, read_record

FORMAT: Final = "rankdeck-checkpoint"
OLD_FORMAT: Final = "rankdeck-generation"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
LEDGER_COPY: Final = "chunk_tracker_state.json"
# What the folder of a checkpoint is called after its number, once a person has gone back to an older one.
ASIDE: Final = ".aside"
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One committed checkpoint, from its manifest.

    Attributes:
        step: The highest optimizer step of its ranks.
        created: Unix seconds.
        val_loss: The lowest validation loss that a rank measured for it; None if none did.
        positions: Each rank's position in the data.
        devices: UUIDs of its devices, by rank; empty in one of version 0.1.
        diverged: Ranks whose weights in it are not finite. Such a checkpoint is written at a run's end only; it is
            never resumed from, never the best, and takes no place among those that are kept.
    """

    number: int
    folder: Path
    step: Whole
    created: float
    world_size: Whole
    mode: str
    val_loss: float | None
    positions: dict[int, Position]
    files: tuple[StagedFile, ...]
    devices: tuple[str, ...] = ()
    diverged: tuple[int, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files)

    def weights(self, rank: int = 0) -> tuple[Path, ...]:
        """Its weights for `export_weights`: one file, every rank's shards, or a rank's own file; empty without any."""
        names = sorted(file.name for file in self.files if file.name.startswith("weights"))
        shards = [name for name in names if name.startswith("weights_shard")]
        own = [name for name in names if name == f"weights_rank{rank}.safetensors"]
        return tuple(self.folder / name for name in (shards or own or names[:1]))

    def ledger(self) -> Any:
        return read_json(self.folder / LEDGER_COPY)


@dataclass(frozen=True, slots=True)
class DamagedCheckpoint:
    """A checkpoint that was committed and cannot be used, as it is damaged, or whole and diverged at a step."""

    number: int
    reason: str
    diverged_at: int | None = None


class CheckpointStore:
    """The checkpoints of one run. The run host is the only writer."""

    def __init__(self, folder: Path) -> None:
        self.dir = folder
        self._open: int | None = None
        self._last_number = 0
        self._in_use: int | None = None
        self._damaged: set[int] = set()

    # making one

    def begin(self) -> tuple[int, Path]:
        """Make the next checkpoint's folder for ranks, and remove unfinished ones; raises `PreflightError`.

        A number is never used twice by one host, so that a rank that writes too late cannot spoil a newer checkpoint.
        """
        self.remove_unfinished()
        taken = (*self._numbers(), *self.set_aside(), *self._damaged)
        self._last_number = max(self._last_number, *taken, 0) + 1
        folder = self._folder(self._last_number)
        with explained(f"{folder} could not be made"):
            # Not the parents: a run's folder that was removed must not come back as an empty shell.
            self.dir.mkdir(exist_ok=True)
            folder.mkdir()
            sync_folder(self.dir)
        self._open = self._last_number
        return self._last_number, folder

    def commit(
        self,
        number: int,
        parts: Mapping[int, CommitStaged],
        ledger: Mapping[str, Any],
        *,
        mode: str,
        devices: Sequence[str],
    ) -> Checkpoint:
        """Make an open checkpoint exist: write the copy of the ledger (`Ledger.preview`), then the manifest.

        Raises:
            StateFileError: A staged file is missing, has another size than its rank said, or a name that is not one.
            PreflightError: The disk refuses; the checkpoint does not exist then.
        """
        folder = self._folder(number)
        staged = _checked_files(folder, [file for rank in sorted(parts) for file in parts[rank].files])
        copy = folder / LEDGER_COPY
        write_atomic(copy, _json(ledger))
        files = (*staged, StagedFile(copy.name, copy.stat().st_size, sha256_file(copy)))
        losses = [p.val_loss for p in parts.values() if p.val_loss is not None and math.isfinite(p.val_loss)]
        checkpoint = Checkpoint(
            number=number,
            folder=folder,
            step=max((part.position.step for part in parts.values()), default=0),
            created=time.time(),
            world_size=len(devices),
            mode=mode,
            val_loss=min(losses, default=None),
            positions={rank: part.position for rank, part in sorted(parts.items())},
            files=files,
            devices=tuple(devices),
            diverged=tuple(rank for rank in sorted(parts) if parts[rank].diverged),
        )
        reach("before_manifest", number)
        write_atomic(folder / MANIFEST, _json(_manifest(checkpoint)))
        reach("manifest_written", number)
        self._open = None
        if not checkpoint.diverged:
            self._in_use = number
        return checkpoint

    def abandon(self, number: int) -> None:
        """Give up an open checkpoint and remove its files as far as possible; a committed one is left alone."""
        if self._open == number:
            self._open = None
        if not (self._folder(number) / MANIFEST).exists():
            self._remove(number)

    def remove_unfinished(self) -> Sequence[Path]:
        """Remove every folder without a manifest, but for the open one and those that `newest_valid` found damaged.

        Returns:
            Folders with a file in use; the next call tries again.
        """
        spared = {self._open, *self._damaged}
        unfinished = [n for n in self._numbers() if n not in spared and not (self._folder(n) / MANIFEST).exists()]
        return [self._folder(number) for number in unfinished if not self._remove(number)]

    def prune(self, keep: int, protect: Collection[int] = ()) -> Sequence[int]:
        """Remove all but the last `keep` checkpoints, the protected ones and the one in use; return their numbers.

        Damaged ones are left for a person to look at. Diverged ones are not counted; a newer good one removes them.
        """
        known = [checkpoint for checkpoint in self.list() if checkpoint.number not in self._damaged]
        good = [checkpoint for checkpoint in known if not checkpoint.diverged]
        stay = {g.number for g in good[-max(keep, 1) :]} | set(protect) | {self._in_use, self._open}
        stay |= {g.number for g in known if g.diverged and (not good or g.number > good[-1].number)}
        return [g.number for g in known if g.number not in stay and self._remove(g.number)]

    # finding one

    def list(self) -> Sequence[Checkpoint]:
        """Every checkpoint whose manifest can be read, oldest first. Hashes are not looked at."""
        found = []
        for number in self._numbers():
            try:
                if (self._folder(number) / MANIFEST).exists():
                    found.append(self.load(number))
            except StateFileError:
                continue  # `newest_valid` names it
        return found

    def load(self, number: int) -> Checkpoint:
        """Read a checkpoint's manifest without looking at its files; also of one that was set aside.

        Raises:
            NewerVersionError: A newer Rankdeck wrote it.
            StateFileError: There is none, or it is damaged.
        """
        folder = self._aside(number) if number in self.set_aside() else self._folder(number)
        path = folder / MANIFEST
        return _parse(require_format(_upgraded(read_json(path)), path, FORMAT, VERSION), number, folder)

    def verify(self, number: int) -> Checkpoint:
        """Read a whole checkpoint and compare it with its manifest; raises as `load`, naming the damaged file."""
        checkpoint = self.load(number)
        for file in checkpoint.files:
            path = checkpoint.folder / file.name
            try:
                size = path.stat().st_size
                if size != file.size:
                    raise _damaged(f"{path} has {size} bytes; {file.size} were written.")
                if sha256_file(path) != file.sha256:
                    raise _damaged(f"{path} does not hold what was written: its SHA-256 differs.")
            except FileNotFoundError:
                raise _damaged(f"{path} is missing.") from None
            except OSError as error:
                raise _damaged(explain(error, f"{path} could not be read").cause) from error
        return checkpoint

    def newest_valid(self, known: int | None = None) -> tuple[Checkpoint | None, Sequence[DamagedCheckpoint]]:
        """Return the newest checkpoint that is whole and not diverged, and the newer unusable ones, newest first.

        Args:
            known: The number of a committed one, from the run's state file: without its manifest it is damaged, and
                not a leftover of a commit that was never finished.

        Raises:
            NewerVersionError: A newer Rankdeck made the newest one; to use an older one would lose its work.
        """
        damaged = []
        there = known is None or known in self.set_aside() or (self._folder(known) / MANIFEST).exists()
        if known is not None and not there and known > self._newest_number():
            self._damaged.add(known)
            path = self._folder(known)
            lost = path / MANIFEST if path.exists() else path
            damaged.append(DamagedCheckpoint(known, f"{lost} is missing, though it was committed."))
        for number in reversed(self._numbers()):
            if not (self._folder(number) / MANIFEST).exists():
                continue
            try:
                checkpoint = self.verify(number)
            except NewerVersionError:
                raise
            except StateFileError as error:
                self._damaged.add(number)
                damaged.append(DamagedCheckpoint(number, error.cause))
                continue
            if checkpoint.diverged:
                reason = "Its weights are not finite."
                damaged.append(DamagedCheckpoint(number, reason, diverged_at=checkpoint.step))
                continue
            self._in_use = number
            return checkpoint, damaged
        return None, damaged

    # going back to an older one

    def set_aside(self) -> Sequence[int]:
        """Numbers of the checkpoints that lie aside, since a person went back to an older one; in ascending order."""
        aside = [name.removesuffix(ASIDE) for name in self._names() if name.endswith(ASIDE)]
        return sorted(number for name in aside if (number := _number(name)) is not None)

    def go_back(self, number: int) -> None:
        """Make a checkpoint the newest and set newer ones aside; it may itself be aside. Raises `PreflightError`.

        Each folder is renamed, the newest first: a kill leaves a run whose newest checkpoint is between the two, and
        the same call again completes it. Nothing is removed, and no number is given twice.
        """
        newer = [other for other in reversed(self._numbers()) if other > number]
        with explained(f"A checkpoint in {self.dir} could not be set aside"):
            for other in newer:
                if (self._folder(other) / MANIFEST).exists():
                    rename(self._folder(other), self._aside(other))
            if number in self.set_aside():
                rename(self._aside(number), self._folder(number))
            sync_folder(self.dir)

    def _folder(self, number: int) -> Path:
        return self.dir / str(number)

    def _aside(self, number: int) -> Path:
        return self.dir / f"{number}{ASIDE}"

    def _numbers(self) -> Sequence[int]:
        return sorted(number for name in self._names() if (number := _number(name)) is not None)

    def _names(self) -> Sequence[str]:
        with explained(f"{self.dir} could not be read"), contextlib.suppress(FileNotFoundError):
            return [item.name for item in self.dir.iterdir()]
        return []

    def _newest_number(self) -> int:
        return max((n for n in self._numbers() if (self._folder(n) / MANIFEST).exists()), default=0)

    def _remove(self, number: int) -> bool:
        """Remove a folder, its manifest first, so that the rest after a kill does not pass for a checkpoint."""
        folder = self._folder(number)
        try:
            (folder / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(folder)
        except FileNotFoundError:
            return True
        except OSError:
            # A file is in use (Windows): it is a leftover now, and removed at a later start.
            return False
        return True


def read_manifest(data: bytes, number: int, folder: Path) -> Checkpoint:
    """Parse a manifest that is not on this disk yet; raises as `CheckpointStore.load`."""
    path = folder / MANIFEST
    try:
        document = parse_json(data)
    except ParseError as error:
        raise _damaged(f"{path} cannot be read as JSON: {error}.") from None
    return _parse(require_format(_upgraded(document), path, FORMAT, VERSION), number, folder)


def _number(name: str) -> int | None:
    """Return the number in a folder's name; None for any name that a checkpoint does not have."""
    is_ours = name.isascii() and name.isdigit() and len(name) < 20 and name == str(int(name))
    return int(name) if is_ours else None


def _checked_files(folder: Path, files: Iterable[StagedFile]) -> tuple[StagedFile, ...]:
    by_name: dict[str, StagedFile] = {}
    for file in files:
        if not _SAFE_NAME.fullmatch(file.name) or file.name in (MANIFEST, LEDGER_COPY):
            raise _damaged(f"A rank staged a file under the name {file.name!r}, which cannot be used.")
        if by_name.setdefault(file.name, file) != file:
            raise _damaged(f"Two ranks staged different files under the name {file.name}.")
        path = folder / file.name
        if not path.is_file() or path.stat().st_size != file.size:
            raise _damaged(f"{path} is not the file of {file.size} bytes that its rank staged.")
    return tuple(by_name.values())


def _upgraded(document: Any) -> Any:
    if isinstance(document, Mapping) and document.get("format") == OLD_FORMAT:
        return {**document, "format": FORMAT, "checkpoint": document.get("generation")}  # 0.1
    return document


def _manifest(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "checkpoint": checkpoint.number,
        "step": checkpoint.step,
        "created": checkpoint.created,
        "world_size": checkpoint.world_size,
        "mode": checkpoint.mode,
        "val_loss": checkpoint.val_loss,
        "positions": {str(rank): dataclasses.asdict(position) for rank, position in checkpoint.positions.items()},
        "files": {file.name: {"size": file.size, "sha256": file.sha256} for file in checkpoint.files},
        "devices": list(checkpoint.devices),
        "diverged": list(checkpoint.diverged),
    }


def _parse(document: Mapping[str, Any], number: int, folder: Path) -> Checkpoint:
    try:
        if document["checkpoint"] != number:
            raise _damaged(f"{folder / MANIFEST} belongs to checkpoint {document['checkpoint']}, not {number}.")
        files = [{"name": name, **entry} for name, entry in document["files"].items()]
        ours = {"number": number, "folder": str(folder), "files": files}
        checkpoint = read_record(Checkpoint, {**document, **ours})
    except KeyError as error:
        raise _damaged(f"{folder / MANIFEST} lacks {error.args[0]!r}.") from None
    except (TypeError, AttributeError, RecordError) as error:
        raise _damaged(f"{folder / MANIFEST} has a field that cannot be read ({error}).") from None
    for file in checkpoint.files:
        if not _SAFE_NAME.fullmatch(file.name):
            raise _damaged(f"{folder / MANIFEST} names a file {file.name!r}, which cannot be one of its own.")
    return checkpoint


def _damaged(cause: str) -> StateFileError:
    return StateFileError(cause, "Use an older checkpoint.", title="A checkpoint is damaged")


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
