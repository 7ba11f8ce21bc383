"""Reader of `chunk_tracker_state.json`: Rankdeck's form, AI-OS's current form, and AI-OS's older form.

Every field is checked before it is used, so that a damaged file leads to a sentence and never to chunks trained twice
or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from core.errors import NewerVersionError, StateFileError
from core.files.atomic import read_json, require_format
from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.paths import CHECKPOINTS, OLD_CHECKPOINTS
from core.protocol.messages import SkippedBatch
from core.records import Limits, RecordError, Whole, read_record

FORMAT: Final = "rankdeck-ledger"
# Version 1 calls the checkpoint a generation.
VERSION: Final = 2
FILE_NAME: Final = "chunk_tracker_state.json"
_CHUNK_SIZE_IN_FOLDER: Final = re.compile(r"_cs(\d+)$")
# The most that a note names; the others are counted.
_NAMED: Final = 5
_OWN_KEYS: Final = frozenset(("samples_per_block", "chunk_size", "lanes", "dataset"))

Form = Literal["rankdeck", "aios"]
Positive = Annotated[int, Limits(1)]
Seconds = Annotated[float, Limits(0)]


@dataclass(frozen=True, slots=True)
class CompletedChunk:
    """A chunk that committed weights hold; `gpu_id` is the rank that trained it, `steps` in the file its samples."""

    epoch: Whole
    block_id: Whole
    chunk_id: Whole
    gpu_id: Whole
    optimizer_step: Whole
    samples: Whole = field(metadata={"key": "steps"})


@dataclass(frozen=True, slots=True)
class ChunkInProgress:
    """A chunk that was claimed at `timestamp` (Unix seconds); `samples_done` are in committed weights, 0 with AI-OS."""

    epoch: Whole
    block_id: Whole
    chunk_id: Whole
    gpu_id: Whole
    timestamp: Seconds
    samples_done: Whole


C = TypeVar("C", CompletedChunk, ChunkInProgress)


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """Contents of a state file; None for missing ones.

    Attributes:
        total_samples: Samples in all completed chunks of all epochs.
        chunk_size: From the file, or for AI-OS's from the name of its folder.
        setup, checkpoint, skipped: Rankdeck's form only.
    """

    path: Path
    form: Form
    completed: tuple[CompletedChunk, ...]
    in_progress: tuple[ChunkInProgress, ...]
    current_epoch: int
    total_blocks: int | None
    total_samples: int
    dataset_name: str | None = None
    chunk_size: int | None = None
    notes: tuple[str, ...] = ()
    setup: LedgerSetup | None = None
    checkpoint: int | None = None
    skipped: tuple[SkippedBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class _OwnDocument:
    completed_chunks: list[CompletedChunk]
    in_progress_chunks: list[ChunkInProgress]
    current_epoch: Whole
    started_blocks: list[Whole]
    completed_blocks: list[Whole]
    blocks_this_epoch: list[Whole]
    total_steps: Whole
    samples: Positive
    samples_per_block: Positive
    chunk_size: Positive
    seed: Whole
    dataset: dict[str, Any]
    world_size: Positive
    groups: Positive = field(metadata={"key": "lanes"})
    total_blocks_in_dataset: Whole | None = None
    brain_id: str | None = None
    dataset_name: str | None = None
    epochs: Whole | None = None
    checkpoint: Whole | None = None
    skipped_batches: list[SkippedBatch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _AiosChunk:
    block_id: Whole
    chunk_id: Whole
    gpu_id: Whole = 0
    optimizer_step: Whole | None = None
    steps: Whole | None = None
    step: Whole | None = None
    true_steps: Whole | None = None
    samples_trained: Whole | None = None


@dataclass(frozen=True, slots=True)
class _AiosClaim:
    block_id: Whole
    chunk_id: Whole
    gpu_id: Whole = 0
    timestamp: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class _AiosDocument:
    completed_chunks: list[_AiosChunk]
    in_progress_chunks: list[_AiosClaim] = field(default_factory=list)
    current_epoch: Whole = 0
    started_blocks: list[Whole] = field(default_factory=list)
    completed_blocks: list[Whole] = field(default_factory=list)
    blocks_this_epoch: list[Whole] = field(default_factory=list)
    total_blocks_in_dataset: Whole | None = None
    brain_id: str | None = None
    dataset_name: str | None = None
    total_steps: Whole | None = None
    total_true_steps: Whole | None = None
    total_samples_trained: Whole | None = None


_AIOS_KEYS: Final = frozenset(key.name for record in (_AiosDocument, _AiosChunk) for key in fields(record))


def read_state_file(path: Path) -> LedgerFile:
    """Read a `chunk_tracker_state.json` in any of the three forms; changes nothing.

    Raises:
        NewerVersionError: A newer Rankdeck wrote it.
        StateFileError: Missing, cut off, another kind of file, or an impossible field; the next step names the
            checkpoint that holds a whole copy, if one lies beside it.
    """
    try:
        return parse_state(read_json(path), path)
    except NewerVersionError:
        raise
    except StateFileError as error:
        copy = _newest_copy(path)
        if copy is None or not path.is_file():
            raise
        raise StateFileError(
            error.cause,
            f"Move {path.name} out of the folder and resume again: checkpoint {copy} holds a whole copy.",
        ) from error


def parse_state(document: Any, path: Path = Path(FILE_NAME)) -> LedgerFile:
    """As `read_state_file`, from parsed JSON; `path` is for errors and for the chunk size in its folder's name."""
    try:
        if not isinstance(document, Mapping) or _is_own(document):
            return _parse_own(require_format(document, path, FORMAT, VERSION), path)
        if "completed_chunks" in document:
            return _parse_aios(document, path)
    except RecordError as error:
        raise StateFileError(f"{path}: {error}.", "Use a copy of the file from before.") from None
    raise StateFileError(
        f"{path} is not a chunk tracker's state: it has no completed_chunks.", "Check that this is the right file."
    )


def _is_own(document: Mapping[str, Any]) -> bool:
    """Whether Rankdeck wrote it; AI-OS's files may have unknown keys, even one named format or version."""
    return str(document.get("format")).startswith("rankdeck") or len(document.keys() & _OWN_KEYS) > 1


def _parse_own(document: dict[str, Any], path: Path) -> LedgerFile:
    if "generation" in document:  # 0.1
        document["checkpoint"] = document["generation"]  # 0.1
    own = read_record(_OwnDocument, document)
    if own.groups not in (1, own.world_size):
        raise RecordError(f"replica groups cannot be shared by {own.world_size} ranks", str(own.groups))
    grid = ChunkGrid(own.samples, own.samples_per_block, own.chunk_size)
    setup = LedgerSetup(grid, own.dataset, own.seed, own.world_size, own.groups, own.epochs or None, own.brain_id)
    return LedgerFile(
        path=path,
        form="rankdeck",
        completed=tuple(own.completed_chunks),
        in_progress=tuple(own.in_progress_chunks),
        current_epoch=own.current_epoch,
        total_blocks=own.total_blocks_in_dataset,
        total_samples=own.total_steps,
        dataset_name=own.dataset_name,
        chunk_size=own.chunk_size,
        setup=setup,
        checkpoint=own.checkpoint,
        skipped=tuple(own.skipped_batches),
    )


def _parse_aios(document: Mapping[str, Any], path: Path) -> LedgerFile:
    file = read_record(_AiosDocument, document)
    epoch = file.current_epoch
    completed = [_aios_chunk(chunk, epoch, file.blocks_this_epoch) for chunk in file.completed_chunks]
    claimed = [
        ChunkInProgress(epoch, claim.block_id, claim.chunk_id, claim.gpu_id, claim.timestamp, 0)
        for claim in file.in_progress_chunks
    ]
    once = _once(completed)
    folder_size = _CHUNK_SIZE_IN_FOLDER.search(path.absolute().parent.name)
    return LedgerFile(
        path=path,
        form="aios",
        completed=tuple(once.values()),
        in_progress=tuple(item for key, item in _once(claimed).items() if key not in once),
        current_epoch=epoch,
        total_blocks=file.total_blocks_in_dataset,
        total_samples=_first(file.total_steps, file.total_true_steps, file.total_samples_trained),
        dataset_name=file.dataset_name,
        chunk_size=int(folder_size[1]) if folder_size and int(folder_size[1]) > 0 else None,
        notes=tuple(_notes(document, file, [*completed, *claimed])),
    )


def _first(*numbers: int | None) -> int:
    return next((number for number in numbers if number is not None), 0)


def _once(chunks: Iterable[C]) -> dict[tuple[int, int, int], C]:
    found: dict[tuple[int, int, int], C] = {}
    for chunk in chunks:
        found.setdefault(_key(chunk), chunk)
    return found


def _key(chunk: CompletedChunk | ChunkInProgress) -> tuple[int, int, int]:
    return chunk.epoch, chunk.block_id, chunk.chunk_id


def _notes(
    document: Mapping[str, Any], file: _AiosDocument, listed: Sequence[CompletedChunk | ChunkInProgress]
) -> list[str]:
    keys = {*document, *(key for chunk in document["completed_chunks"] for key in chunk)}
    times = Counter(map(_key, listed))
    trained = {chunk.block_id for chunk in file.completed_chunks}
    notes = [
        *_naming("The file has keys that Rankdeck does not know and ignores", map(repr, sorted(keys - _AIOS_KEYS))),
        *_naming(
            "The file lists these chunks more than once; each counts once, as completed if it is so anywhere",
            (f"chunk {item.chunk_id} of block {item.block_id}" for item in listed if times[_key(item)] > 1),
        ),
        *_naming(
            "The file lists these blocks as completed, but none of their chunks; they are trained",
            (f"block {block}" for block in sorted({*file.completed_blocks, *file.blocks_this_epoch} - trained)),
        ),
    ]
    if epoch := file.current_epoch:
        notes.append(
            f"The file is in epoch {epoch + 1} and does not say in which epoch a chunk was completed. Chunks of the "
            f"blocks in blocks_this_epoch count for epoch {epoch + 1}, all others for epoch {epoch}."
        )
    return notes


def _naming(sentence: str, names: Iterable[str]) -> list[str]:
    known = [name[:40] for name in dict.fromkeys(names)]
    more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
    return [f"{sentence}: {', '.join(known[:_NAMED])}{more}."] if known else []


def _aios_chunk(chunk: _AiosChunk, epoch: int, this_epoch: Sequence[int]) -> CompletedChunk:
    """One completed chunk of AI-OS's, with the epoch it must be from.

    Its files keep the chunks of all epochs without saying which. In a later epoch only the blocks named in
    `blocks_this_epoch` are known to be done again; every other chunk is from the epoch before.
    """
    return CompletedChunk(
        epoch=epoch if epoch == 0 or chunk.block_id in this_epoch else epoch - 1,
        block_id=chunk.block_id,
        chunk_id=chunk.chunk_id,
        gpu_id=chunk.gpu_id,
        optimizer_step=_first(chunk.optimizer_step, chunk.step),
        samples=_first(chunk.steps, chunk.true_steps, chunk.samples_trained),
    )


def _newest_copy(path: Path) -> int | None:
    numbers = [
        int(manifest.parent.name)
        for folder in (CHECKPOINTS, OLD_CHECKPOINTS)
        for manifest in (path.parent / folder).glob("*/manifest.json")
        if manifest.parent.name.isdecimal() and (manifest.parent / FILE_NAME).is_file()
    ]
    return max(numbers, default=None)
