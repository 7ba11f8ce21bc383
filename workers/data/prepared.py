"""The run's `data/` folder: prepared once by rank 0, read by all ranks, reused on resume."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import DatasetError
from core.files.atomic import explained, write_atomic
from core.held_files import read_utf8, remove_file
from core.protocol.messages import DataReady


def give_back_spare_memory() -> None:
    """Return free pages of glibc's heaps to the system.

    A CPU rank keeps what it frees, since each step asks for it again (docs/decisions/0025). Making tokens leaves 220
    MiB for a megabyte of text in the heaps of threads that are idle from then on.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none
    if trim is not None:
        trim(0)


DATA_JSON: Final = "data.json"
_COMPARED: Final = ("documents", "tokens")


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The dataset as a recipe prepared it.

    Attributes:
        samples: Training samples; the ledger counts these.
        val_samples: Samples held out for validation.
        info: Plain values for the recipe's ranks and the window.
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
    """Build the folder, or find it built from the same ingredients.

    Args:
        folder: The run's data folder.
        build: Fills it.
        key: JSON values that the outcome depends on.
        is_whole: Whether parts that are kept elsewhere still exist, by its `info`.

    Raises:
        DatasetError: The dataset has no training sample, or is read differently than when the folder was built first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ingredients = json.loads(json.dumps(dict(key)))
    found = _read(folder / DATA_JSON)
    if found.get("key") == ingredients and is_whole(found["info"]):
        return DataReady(found["samples"], found["val_samples"], found["info"])
    # What is kept elsewhere is gone: the record stays, to compare with.
    is_again = found.get("key") == ingredients
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
    """Refuse data that another version reads differently: checkpoints count its samples."""
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
    """The record of an earlier attempt; empty where it is missing or damaged, so that it is made again."""
    try:
        value = json.loads(read_utf8(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
