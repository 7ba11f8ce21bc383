"""Weights for an export: the run's model, or the files of a committed checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.full_weights import export_weights
from core.checkpoints.restore_plan import best_copy
from core.checkpoints.store import Checkpoint, CheckpointStore
from core.errors import RankdeckError, UsageError
from core.files.atomic import explained
from core.files.destination import refused
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore

_TRIES: Final = 3


def write_weights(store: RunStore, recipe: Recipe | None, number: int | None, target: Path) -> str:
    """Write whole weights of a run, live or not, as one safetensors file; return their description for a person.

    Without a number it takes `model.safetensors` of a run that has ended in order, else the newest whole checkpoint.

    Raises:
        UsageError: There are none, or not that checkpoint, or they are not finite.
        StateFileError: The checkpoint is damaged; names the file.
        PreflightError: The disk refuses.
    """
    if recipe is not None and recipe.self_contained:
        raise refused(
            f"{recipe.title} runs a program that saves its weights itself.",
            f"Look for them where it saves: {store.dir}",
        )
    for tries_left in reversed(range(_TRIES)):
        sources, description = find_weights(store, number)
        with explained(f"{target.parent} could not be made"):
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            export_weights(sources, target)
            return description
        except RankdeckError:
            # A live run removes old checkpoints: then there is a newer one now.
            if not tries_left or all(path.exists() for path in sources):
                raise
    raise AssertionError("unreachable")


def find_weights(store: RunStore, number: int | None) -> tuple[tuple[Path, ...], str]:
    """Return the sources of `export_weights`, and their description for a person."""
    state, kept = store.state(), CheckpointStore(store.checkpoints)
    last = next((item for item in kept.list()[-1:] if item.diverged), None)
    # Ranks that train alone may have left a good model even where one of them has diverged.
    useless = last is not None and len(last.diverged) == len(last.positions)
    if number is None and not useless and state.state in ("finished", "stopped") and store.model.is_file():
        return (store.model,), f"the weights of step {state.step:,}, as the run left them"
    if number is not None:
        checkpoint = choose_checkpoint(store.checkpoints, str(number), store.dir.name)
    elif last is not None:
        raise _diverged(store, kept, last)
    else:
        checkpoint = _newest(store, kept)
    sources, whose = _parts(checkpoint)
    return sources, f"checkpoint {checkpoint.number}, step {checkpoint.step:,}{whose}"


def _diverged(store: RunStore, kept: CheckpointStore, bad: Checkpoint) -> UsageError:
    good = [item for item in kept.list() if not item.diverged]
    cause = f"The weights of {store.dir.name} at step {bad.step:,} (checkpoint {bad.number}) are not finite."
    if not good:
        return refused(cause, "Train the run again.")
    number, step = good[-1].number, good[-1].step
    return refused(cause, f"Export checkpoint {number} (step {step:,}).", f"--checkpoint {number}")


def _newest(store: RunStore, kept: CheckpointStore) -> Checkpoint:
    checkpoint, damaged = kept.newest_valid()
    if checkpoint is None:
        why = f" ({damaged[0].reason})" if damaged else ""
        raise refused(
            f"{store.dir.name} has no weights: no checkpoint was saved yet{why}.",
            "Let it train until its first checkpoint, or stop it: then it saves one.",
        )
    return checkpoint


def _parts(checkpoint: Checkpoint) -> tuple[tuple[Path, ...], str]:
    if not (found := checkpoint.weights()):
        raise refused(
            f"Checkpoint {checkpoint.number} holds no weights.", "Choose another checkpoint.", "--checkpoint N"
        )
    copies = {rank: checkpoint.weights(rank) for rank in checkpoint.positions}
    if len(found) > 1 or len(set(copies.values())) < 2:
        return found, ""
    best = best_copy(checkpoint)
    return copies[best.rank], f", rank {best.rank}'s copy ({best.quality})"
