"""Reading `chunk_tracker_state.json`: Rankdeck's form, AI-OS's current form, and AI-OS's older form.

Every field is checked before anything is made of it, so that a damaged file leads to a sentence and never to
chunks trained twice or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from core.errors import NewerVersionError, StateFileError
from core.files.atomic import read_json, require_format, type_text
from core.paths import CHECKPOINTS, OLD_CHECKPOINTS

FORMAT: Final = "rankdeck-ledger"
VERSION: Final = 2
"""Version 1 calls the checkpoint a generation."""
FILE_NAME: Final = "chunk_tracker_state.json"
_CHUNK_SIZE_IN_FOLDER: Final = re.compile(r"_cs(\d+)$")
_OLDER_CHUNK_KEYS: Final = frozenset(("step", "true_steps", "samples_trained"))
_LARGEST: Final = 2**63 - 1
_NAMED: Final = 5
"""The most that a note names; the others are counted."""
_OWN_KEYS: Final = frozenset(("samples_per_block", "chunk_size", "lanes", "dataset"))
_AIOS_KEYS: Final = frozenset(
    (
        *("brain_id", "dataset_name", "completed_chunks", "started_blocks", "completed_blocks", "current_epoch"),
        *("blocks_this_epoch", "total_blocks_in_dataset", "in_progress_chunks"),
        *("total_steps", "total_true_steps", "total_samples_trained"),
        *("block_id", "chunk_id", "gpu_id", "optimizer_step", "steps", *_OLDER_CHUNK_KEYS),
    )
)
"""Of the file and of a completed chunk, in both forms."""

Form = Literal["rankdeck", "aios", "aios-older"]


@dataclass(frozen=True, slots=True)
class CompletedChunk:
    """A chunk that committed weights hold.

    Attributes:
        epoch: 0 for the first; AI-OS's files do not say it.
        gpu_id: The rank that trained it.
        optimizer_step: That rank's step when it was done.
        samples: How many samples it has (AI-OS calls them `steps`).
    """

    epoch: int
    block_id: int
    chunk_id: int
    gpu_id: int
    optimizer_step: int
    samples: int


@dataclass(frozen=True, slots=True)
class ChunkInProgress:
    """A chunk that was claimed.

    Attributes:
        timestamp: When, in Unix seconds.
        samples_done: How many of its samples committed weights hold; 0 in AI-OS's files.
    """

    epoch: int
    block_id: int
    chunk_id: int
    gpu_id: int
    timestamp: float
    samples_done: int


C = TypeVar("C", CompletedChunk, ChunkInProgress)


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """What a state file says. None is what it does not say.

    Attributes:
        path: Where it lies.
        form: Who wrote it.
        completed: In the order of the file.
        current_epoch: 0 for the first.
        blocks_this_epoch: Blocks done in `current_epoch`.
        total_blocks: Blocks in the dataset.
        total_samples: Samples in all completed chunks of all epochs.
        chunk_size: From the file, or for AI-OS's from the name of its folder.
        notes: What was odd about AI-OS's file and how it was taken, one sentence each.
        samples, samples_per_block, seed, dataset, world_size, groups, epochs, checkpoint: Rankdeck's form only.
    """

    path: Path
    form: Form
    completed: tuple[CompletedChunk, ...]
    in_progress: tuple[ChunkInProgress, ...]
    current_epoch: int
    started_blocks: tuple[int, ...]
    completed_blocks: tuple[int, ...]
    blocks_this_epoch: tuple[int, ...]
    total_blocks: int | None
    total_samples: int
    brain_id: str | None = None
    dataset_name: str | None = None
    chunk_size: int | None = None
    notes: tuple[str, ...] = ()
    samples: int | None = None
    samples_per_block: int | None = None
    seed: int | None = None
    dataset: Mapping[str, Any] | None = None
    world_size: int | None = None
    groups: int | None = None
    epochs: int | None = None
    checkpoint: int | None = None


def read_state_file(path: Path) -> LedgerFile:
    """Reads a `chunk_tracker_state.json` in any of the three forms; changes nothing.

    Raises:
        NewerVersionError: A newer Rankdeck wrote it.
        StateFileError: Missing, cut off, not such a file, or a field that cannot be right; the next step names the
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
    """As `read_state_file`, from parsed JSON; `path` is for the words and for the chunk size in its folder's name.

    Raises:
        StateFileError: As `read_state_file`.
    """
    if isinstance(document, Mapping) and not _is_own(document):
        if "completed_chunks" in document:
            return _parse_aios(_Fields(document, path))
        raise StateFileError(
            f"{path} is not a chunk tracker's state: it has no completed_chunks.", "Check that this is the right file."
        )
    return _parse_own(_Fields(require_format(document, path, FORMAT, VERSION), path))


def _is_own(document: Mapping[str, Any]) -> bool:
    """Whether Rankdeck wrote it; AI-OS's files may have keys that we do not know, even one named format or version."""
    return str(document.get("format")).startswith("rankdeck") or len(document.keys() & _OWN_KEYS) > 1


def _parse_own(fields: _Fields) -> LedgerFile:
    dataset = fields.document.get("dataset")
    if not isinstance(dataset, Mapping):
        raise fields.wrong("dataset", dataset, "an object")
    return LedgerFile(
        path=fields.path,
        form="rankdeck",
        completed=tuple(
            CompletedChunk(
                chunk.whole("epoch"),
                chunk.whole("block_id"),
                chunk.whole("chunk_id"),
                chunk.whole("gpu_id"),
                chunk.whole("optimizer_step"),
                chunk.whole("steps"),
            )
            for chunk in fields.objects("completed_chunks")
        ),
        in_progress=_in_progress(fields, None),
        current_epoch=fields.whole("current_epoch"),
        started_blocks=fields.wholes("started_blocks"),
        completed_blocks=fields.wholes("completed_blocks"),
        blocks_this_epoch=fields.wholes("blocks_this_epoch"),
        total_blocks=fields.whole_or_none("total_blocks_in_dataset"),
        total_samples=fields.whole("total_steps"),
        brain_id=fields.text_or_none("brain_id"),
        dataset_name=fields.text_or_none("dataset_name"),
        chunk_size=fields.whole("chunk_size", least=1),
        samples=fields.whole("samples", least=1),
        samples_per_block=fields.whole("samples_per_block", least=1),
        seed=fields.whole("seed"),
        dataset=dict(dataset),
        world_size=fields.whole("world_size", least=1),
        groups=fields.whole("lanes", least=1),
        epochs=fields.whole_or_none("epochs"),
        checkpoint=fields.whole_or_none("generation" if "generation" in fields.document else "checkpoint"),  # 0.1
    )


def _parse_aios(fields: _Fields) -> LedgerFile:
    chunks = fields.objects("completed_chunks")
    older = "in_progress_chunks" not in fields.document and "started_blocks" not in fields.document
    older = older or any(_OLDER_CHUNK_KEYS & chunk.document.keys() for chunk in chunks)
    epoch = fields.whole("current_epoch", default=0)
    this_epoch = fields.wholes("blocks_this_epoch", optional=True)
    completed = [_aios_chunk(chunk, epoch, this_epoch) for chunk in chunks]
    once = _once(completed)
    claimed = _in_progress(fields, epoch)
    blocks = {*fields.wholes("completed_blocks", optional=True), *this_epoch}
    notes = (
        *_unknown_keys(fields.document, chunks),
        *_repetitions(completed, claimed),
        *_other_epochs(epoch),
        *_empty_blocks(blocks, completed),
    )
    folder_size = _CHUNK_SIZE_IN_FOLDER.search(fields.path.absolute().parent.name)
    return LedgerFile(
        path=fields.path,
        form="aios-older" if older else "aios",
        completed=tuple(once.values()),
        in_progress=tuple(item for key, item in _once(claimed).items() if key not in once),
        current_epoch=epoch,
        started_blocks=fields.wholes("started_blocks", optional=True),
        completed_blocks=fields.wholes("completed_blocks", optional=True),
        blocks_this_epoch=this_epoch,
        total_blocks=fields.whole_or_none("total_blocks_in_dataset"),
        total_samples=fields.first_whole(("total_steps", "total_true_steps", "total_samples_trained")),
        brain_id=fields.text_or_none("brain_id"),
        dataset_name=fields.text_or_none("dataset_name"),
        chunk_size=int(folder_size[1]) if folder_size and int(folder_size[1]) > 0 else None,
        notes=notes,
    )


def _once(chunks: Iterable[C]) -> dict[tuple[int, int, int], C]:
    """Chunks by epoch, block and chunk; of several entries for one chunk the first."""
    found: dict[tuple[int, int, int], C] = {}
    for chunk in chunks:
        found.setdefault(_key(chunk), chunk)
    return found


def _key(chunk: CompletedChunk | ChunkInProgress) -> tuple[int, int, int]:
    return chunk.epoch, chunk.block_id, chunk.chunk_id


def _unknown_keys(document: Mapping[str, Any], chunks: Sequence[_Fields]) -> list[str]:
    unknown = sorted({*document.keys(), *(key for chunk in chunks for key in chunk.document)} - _AIOS_KEYS)
    if not unknown:
        return []
    named = ", ".join(f"{key!r:.40}" for key in unknown[:_NAMED])
    return [f"The file has keys that Rankdeck does not know and ignores: {named}{_more(unknown)}."]


def _repetitions(completed: Sequence[CompletedChunk], claimed: Sequence[ChunkInProgress]) -> list[str]:
    """Chunks that stand there more than once. AI-OS's claims expire, so that a slow chunk is trained twice."""
    done, taken = _once(completed), _once(claimed)
    again = [(chunk, done[_key(chunk)]) for chunk in completed if chunk is not done[_key(chunk)]]
    return [
        *_about("as completed more than once; each counts once", [chunk for chunk, first in again if chunk == first]),
        *_about(
            "as completed more than once with different values; the first entry of each counts",
            [chunk for chunk, first in again if chunk != first],
        ),
        *_about("as completed and as claimed; each counts as completed", [done[key] for key in taken if key in done]),
        *_about(
            "as claimed more than once; each is trained once",
            [item for item in claimed if item is not taken[_key(item)]],
        ),
    ]


def _about(what: str, chunks: Sequence[CompletedChunk | ChunkInProgress]) -> list[str]:
    names = list(dict.fromkeys(f"chunk {chunk.chunk_id} of block {chunk.block_id}" for chunk in chunks))
    if not names:
        return []
    return [f"The file lists these chunks {what}: {', '.join(names[:_NAMED])}{_more(names)}."]


def _other_epochs(epoch: int) -> list[str]:
    if epoch == 0:
        return []
    return [
        f"The file is in epoch {epoch + 1} and does not say in which epoch a chunk was completed. Chunks of the blocks "
        f"in blocks_this_epoch count for epoch {epoch + 1}, all others for epoch {epoch}."
    ]


def _empty_blocks(blocks: Iterable[int], completed: Sequence[CompletedChunk]) -> list[str]:
    empty = [f"block {block}" for block in sorted(set(blocks) - {chunk.block_id for chunk in completed})]
    if not empty:
        return []
    return [
        "The file lists these blocks as completed, but none of their chunks; they are trained: "
        f"{', '.join(empty[:_NAMED])}{_more(empty)}."
    ]


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""


def _aios_chunk(chunk: _Fields, epoch: int, this_epoch: Sequence[int]) -> CompletedChunk:
    """One completed chunk of AI-OS's, with the epoch it must be from.

    Its files keep the chunks of all epochs without saying which. In a later epoch only the blocks named in
    `blocks_this_epoch` are known to be done again; every other chunk is from the epoch before.
    """
    block_id = chunk.whole("block_id")
    return CompletedChunk(
        epoch=epoch if epoch == 0 or block_id in this_epoch else epoch - 1,
        block_id=block_id,
        chunk_id=chunk.whole("chunk_id"),
        gpu_id=chunk.whole("gpu_id", default=0),
        optimizer_step=chunk.first_whole(("optimizer_step", "step")),
        samples=chunk.first_whole(("steps", "true_steps", "samples_trained")),
    )


def _in_progress(fields: _Fields, aios_epoch: int | None) -> tuple[ChunkInProgress, ...]:
    return tuple(
        ChunkInProgress(
            epoch=chunk.whole("epoch") if aios_epoch is None else aios_epoch,
            block_id=chunk.whole("block_id"),
            chunk_id=chunk.whole("chunk_id"),
            gpu_id=chunk.whole("gpu_id", default=0),
            timestamp=chunk.number("timestamp"),
            samples_done=chunk.whole("samples_done") if aios_epoch is None else 0,
        )
        for chunk in fields.objects("in_progress_chunks", optional=aios_epoch is not None)
    )


def _newest_copy(path: Path) -> int | None:
    """The newest checkpoint beside `path` that has a manifest and a copy of the ledger."""
    numbers = [
        int(manifest.parent.name)
        for folder in (CHECKPOINTS, OLD_CHECKPOINTS)
        for manifest in (path.parent / folder).glob("*/manifest.json")
        if manifest.parent.name.isdecimal() and (manifest.parent / FILE_NAME).is_file()
    ]
    return max(numbers, default=None)


class _Fields:
    """An object of the file, its fields read with their checks.

    Args:
        document: The object.
        path: The file, for the words.
        where: The object's place in the file: "completed_chunks[3]."; empty for the whole file.
    """

    def __init__(self, document: Mapping[str, Any], path: Path, where: str = "") -> None:
        self.document = document
        self.path = path
        self._where = where

    def wrong(self, name: str, value: Any, wanted: str) -> StateFileError:
        """The error for a field that cannot be right."""
        found = f"holds {type_text(value)}" if name in self.document else "is missing"
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = f"is {value}"
        return StateFileError(
            f"{self.path}: {self._where}{name} {found}; it must be {wanted}.", "Use a copy of the file from before."
        )

    def whole(self, name: str, *, default: int | None = None, least: int = 0) -> int:
        """A whole number of at least `least`; `default`, if there is one, where the field is missing."""
        value = self.document.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST:
            return value
        raise self.wrong(name, value, f"a whole number of {least} or more")

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, or None where the field is null or missing."""
        return None if self.document.get(name) is None else self.whole(name)

    def first_whole(self, names: Sequence[str]) -> int:
        """The first of several names that is there, as a whole number; 0 if none is."""
        return next((self.whole(name) for name in names if self.document.get(name) is not None), 0)

    def number(self, name: str) -> float:
        """A number that is not negative; 0 where the field is missing."""
        value = self.document.get(name, 0.0)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
        raise self.wrong(name, value, "a number of 0 or more")

    def text_or_none(self, name: str) -> str | None:
        """Text, or None where the field is null or missing."""
        value = self.document.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, value, "text")

    def wholes(self, name: str, *, optional: bool = False) -> tuple[int, ...]:
        """A list of whole numbers of 0 or more."""
        value = self.document.get(name, [] if optional else None)
        if not isinstance(value, list):
            raise self.wrong(name, value, "a list of whole numbers")
        items = _Fields({f"{name}[{n}]": item for n, item in enumerate(value)}, self.path, self._where)
        return tuple(items.whole(key) for key in items.document)

    def objects(self, name: str, *, optional: bool = False) -> list[_Fields]:
        """A list of objects."""
        value = self.document.get(name, [] if optional else None)
        if not isinstance(value, list):
            raise self.wrong(name, value, "a list of objects")
        items = _Fields({f"{name}[{n}]": item for n, item in enumerate(value)}, self.path, self._where)
        for key, item in items.document.items():
            if not isinstance(item, Mapping):
                raise items.wrong(key, item, "an object")
        return [_Fields(item, self.path, f"{self._where}{name}[{position}].") for position, item in enumerate(value)]
