"""Full weights: one file made of the shards that ranks wrote. Bytes are copied, no number is looked at.

The format is safetensors (https://github.com/huggingface/safetensors#format). Ranks note in its metadata which tensors
are pieces: under "rankdeck" `{"pieces": {name: [first element, whole shape]}}`, and under "tied" the names that share
another's numbers. Pieces are runs of elements in row-major order, so a whole tensor is its pieces one after another.
The file is laid out exactly as a rank lays out whole weights, so that nothing in it shows how they were trained.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from core.checkpoints.state_header import read_head
from core.errors import StateFileError
from core.files.atomic import copy_atomic, write_atomic
from core.held_files import open_binary
from core.parsing import parse_json

_COPY_BYTES: Final = 1 << 20
_ITEM_BYTES: Final = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Run:
    """Elements ``[start, stop)`` of the flattened whole tensor, which begin at byte `offset` of a shard."""

    file: int
    offset: int
    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class _Whole:
    dtype: str
    shape: tuple[int, ...]
    runs: tuple[_Run, ...]


def export_weights(sources: Sequence[Path], target: Path) -> None:
    """Make `target` a file of whole weights; it is replaced in one piece.

    `sources`: One file of whole weights, which is copied as it is, or every rank's shards.

    Raises:
        StateFileError: The shards are damaged or do not make a whole.
        PreflightError: Disk full, no permission.
    """
    if len(sources) == 1:
        copy_atomic(sources[0], target)
        return
    runs: dict[str, list[_Run]] = {}
    tied: dict[str, str] = {}
    for number, path in enumerate(sources):
        for name, run in _read_shard(number, path, tied):
            runs.setdefault(name, []).append(run)
    whole = {name: _whole(name, found, sources) for name, found in runs.items() if name not in tied}
    head, order = _layout(whole, tied)

    def fill(file: IO[bytes]) -> None:
        with ExitStack() as stack:
            shards = [stack.enter_context(open_binary(path)) for path in sources]
            file.write(head)
            for name in order:
                for run in whole[name].runs:
                    _copy(shards[run.file], run, file, sources[run.file])

    write_atomic(target, fill)


def _read_shard(number: int, path: Path, tied: dict[str, str]) -> Iterator[tuple[str, _Run]]:
    try:
        head, start_of_tensors = read_head(path)
        metadata: Mapping[str, str] = head.pop("__metadata__", {})
        pieces: Mapping[str, Any] = parse_json(metadata.get("rankdeck", "{}")).get("pieces", {})
        tied.update(parse_json(metadata.get("tied", "{}")))
        for name, entry in head.items():
            begin, end = entry["data_offsets"]
            start, shape = pieces.get(name, (0, entry["shape"]))
            count = (end - begin) // _ITEM_BYTES[entry["dtype"]]
            yield name, _Run(number, start_of_tensors + begin, start, start + count, tuple(shape), entry["dtype"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise _damaged(f"{path} cannot be read ({type(error).__name__}: {error}).") from error


def _whole(name: str, runs: Iterable[_Run], sources: Sequence[Path]) -> _Whole:
    ordered = sorted(runs, key=lambda run: (run.start, run.file))
    first, end, kept = ordered[0], 0, []
    for run in ordered:
        if (run.shape, run.dtype) != (first.shape, first.dtype) or run.start > end:
            end = -1
            break
        if run.stop > end:
            known = (end - run.start) * _ITEM_BYTES[run.dtype]
            kept.append(replace(run, offset=run.offset + known, start=end))
            end = run.stop
    if end != math.prod(first.shape):
        raise _damaged(f"The pieces of {name} in {sources[0].parent} do not make a whole of shape {list(first.shape)}.")
    return _Whole(first.dtype, first.shape, tuple(kept))


def _layout(whole: Mapping[str, _Whole], tied: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """The head of the file and the order of its tensors, as in `workers.state_files.safetensors_files`."""
    metadata = {"format": "pt"}
    if tied:
        metadata["tied"] = json.dumps(dict(tied), sort_keys=True)
    head: dict[str, Any] = {"__metadata__": metadata}
    order = sorted(whole, key=lambda name: (-_ITEM_BYTES[whole[name].dtype], name))
    end = 0
    for name in order:
        tensor = whole[name]
        begin, end = end, end + math.prod(tensor.shape) * _ITEM_BYTES[tensor.dtype]
        head[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, order


def _copy(shard: IO[bytes], run: _Run, target: IO[bytes], path: Path) -> None:
    shard.seek(run.offset)
    left = (run.stop - run.start) * _ITEM_BYTES[run.dtype]
    while left:
        block = shard.read(min(left, _COPY_BYTES))
        if not block:
            raise _damaged(f"{path} ends before its tensors do.")
        target.write(block)
        left -= len(block)


def _damaged(cause: str) -> StateFileError:
    return StateFileError(cause, "Resume the run: an earlier checkpoint is used, and the model is exported again.")
