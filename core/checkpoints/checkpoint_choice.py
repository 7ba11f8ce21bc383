"""Checkpoints of a run as a person chooses among them: listed, and one of them found to resume from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.checkpoints.store import ASIDE, Checkpoint, CheckpointStore
from core.errors import StateFileError, UsageError
from core.formatting import listed


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One checkpoint in a list; `aside`: it was set aside when the run was resumed from an older one."""

    number: int
    step: int
    val_loss: float | None
    diverged: bool
    aside: bool

    @property
    def text(self) -> str:
        marks = [mark for mark, holds in (("diverged", self.diverged), ("set aside", self.aside)) if holds]
        return f"{self.number} ({', '.join([f'step {self.step:,}', *marks])})"


def entry_of(checkpoint: Checkpoint, *, aside: bool = False) -> CheckpointEntry:
    return CheckpointEntry(checkpoint.number, checkpoint.step, checkpoint.val_loss, bool(checkpoint.diverged), aside)


def list_checkpoints(folder: Path) -> tuple[CheckpointEntry, ...]:
    """The checkpoints in a run's `checkpoints` folder, oldest first; what cannot be read is left out."""
    kept = CheckpointStore(folder)
    aside = set(kept.set_aside())
    found = list(kept.list())
    for number in aside:
        try:
            found.append(kept.load(number))
        except StateFileError:
            continue
    return tuple(entry_of(item, aside=item.number in aside) for item in sorted(found, key=lambda item: item.number))


def choose_checkpoint(folder: Path, text: str, run: str) -> Checkpoint:
    """Return the checkpoint with the number that a person gave, whole and with finite weights.

    Raises:
        UsageError: There is none of that number, or it is diverged.
        StateFileError: It is damaged; names the file.
    """
    there = list_checkpoints(folder)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    kept = [item.text for item in there if not item.diverged and item.number != number]
    another = f"Choose another checkpoint: {', '.join(kept) or 'none'}."
    entry = next((item for item in there if item.number == number), None)
    if entry is None:
        raise UsageError(
            f"{run} has no checkpoint {text[:40]}.",
            f"There are: {', '.join(kept)}. Older ones have been removed." if kept else "No checkpoint was saved yet.",
            title="There is no such checkpoint",
        )
    if entry.diverged:
        raise UsageError(
            f"The weights of checkpoint {number} (step {entry.step:,}) are not finite.",
            another,
            title="This checkpoint is diverged",
        )
    try:
        return CheckpointStore(folder).verify(number)
    except StateFileError as error:
        raise StateFileError(error.cause, another, title=error.title) from None


def newer_than(number: int, entries: Sequence[CheckpointEntry]) -> tuple[int, ...]:
    return tuple(item.number for item in entries if item.number > number and not item.aside)


def aside_line(numbers: Sequence[int]) -> str:
    names = listed([f"{number}{ASIDE}" for number in numbers])
    return (
        f"Newer checkpoints are set aside: their folders are renamed to {names}. They are kept but not used; choose "
        f"checkpoint {numbers[-1]} to go back to the newest."
    )
