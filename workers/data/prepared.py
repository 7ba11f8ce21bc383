"""The run's `data/` folder: prepared once by rank 0, read by all ranks, reused on resume."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import DatasetError
from core.files.atomic import explained, replace_with_retry, write_atomic
from core.held_files import read_utf8, remove_file, remove_folder
from core.protocol.messages import DataReady


def give_back_spare_memory() -> None:
    """Hands free pages of the C library's heaps to the system; does nothing where it has no call for that.

    A CPU rank keeps what it frees, since each step asks for it again (docs/decisions/0025). What making tokens took
    lies in the heaps of threads that are idle from then on: 220 MiB for a megabyte of text.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none
    if trim is not None:
        trim(0)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Gives an empty folder to be filled, which takes the place of `folder` at the end of the block.

    What a killed process or an exception leaves of it is never taken for `folder`.

    Args:
        folder: Is not there yet; the folder above it need not be either.

    Raises:
        PreflightError: The disk refuses, or Windows, because another program holds a file in it for too long.
    """
    part = folder.with_name(f"{folder.name}.part")
    with explained(f"{part} could not be made"):
        if part.exists():
            remove_folder(part)
        part.mkdir(parents=True)
    yield part
    with explained(f"{folder} could not be put in place"):
        replace_with_retry(part, folder)  # a virus scanner looks at files that were just written


DATA_JSON: Final = "data.json"
_COMPARED: Final = ("documents", "tokens")


@dataclass(frozen=True, slots=True)
class PreparedData:
    """What a recipe has made of the dataset.

    Attributes:
        samples: Training samples; the ledger counts these.
        val_samples: Samples held out for validation.
        info: Plain values that the recipe's ranks and the window want to know.
    """

    samples: int
    val_samples: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)


def prepare(
    folder: Path,
    build: Callable[[Path], PreparedData],
    key: Mapping[str, Any],
    is_whole: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> DataReady:
    """Builds the folder, or finds it built from the same ingredients.

    Args:
        folder: The run's data folder.
        build: Fills it.
        key: Everything that the outcome depends on; JSON holds it.
        is_whole: Says by its `info` whether what was built lies there still, where part of it is kept elsewhere.

    Raises:
        DatasetError: The dataset has no training sample, or is read otherwise than when the folder was built first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ingredients = json.loads(json.dumps(dict(key)))
    found = _read(folder / DATA_JSON)
    if found.get("key") == ingredients and is_whole(found["info"]):
        return DataReady(found["samples"], found["val_samples"], found["info"])
    is_again = found.get("key") == ingredients  # what is kept elsewhere is gone: the record stays, to compare with
    if not is_again:
        with explained(f"{folder / DATA_JSON} could not be removed"):
            remove_file(folder / DATA_JSON)
    made = build(folder)
    if is_again:
        _check_same(found, made)
    if made.samples < 1:
        raise DatasetError("The dataset is too small for a single training sample.", "Choose a larger dataset.")
    record = {"samples": made.samples, "val_samples": made.val_samples, "info": dict(made.info)}
    write_atomic(folder / DATA_JSON, json.dumps({"key": ingredients, **record}, indent=1) + "\n")
    return DataReady(made.samples, made.val_samples, dict(made.info))


def _check_same(before: Mapping[str, Any], made: PreparedData) -> None:
    """Refuses data that is read otherwise now, by another version say: checkpoints count its samples."""
    was = (before["samples"], *(before["info"].get(name) for name in _COMPARED))
    now = (made.samples, *(made.info.get(name) for name in _COMPARED))
    if was != now:
        raise DatasetError(
            f"When the run was started, the data was read as {_amount(was)}. This version reads it as {_amount(now)}.",
            "Start a new run on this data.",
            title="The data is read differently now",
        )


def _amount(numbers: tuple[Any, ...]) -> str:
    samples, documents, tokens = numbers
    known = [(documents, "documents"), (tokens, "tokens"), (samples, "samples")]
    return ", ".join(f"{number:,} {what}" for number, what in known if isinstance(number, int))


def _read(path: Path) -> dict[str, Any]:
    """The record of an earlier attempt; empty when there is none or it is damaged, so that it is made again."""
    try:
        value = json.loads(read_utf8(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
