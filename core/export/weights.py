"""Weights for an export: the run's model, or the files of a committed checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.full_weights import export_weights
from core.checkpoints.store import Checkpoint, CheckpointStore
from core.errors import RankdeckError, UsageError
from core.export.lines import MetricsLines
from core.files.atomic import explained
from core.files.destination import refused
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore

_TRIES: Final = 3


class Weights(NamedTuple):
    """One file of whole weights or every rank's shards, as `export_weights` takes them, and their description."""

    sources: tuple[Path, ...]
    description: str


def write_weights(
    store: RunStore, recipe: Recipe | None, number: int | None, target: Path, *, allow_diverged: bool = False
) -> str:
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
        found = find_weights(store, number, allow_diverged=allow_diverged)
        with explained(f"{target.parent} could not be made"):
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            export_weights(found.sources, target)
            return found.description
        except RankdeckError:
            # A live run removes old checkpoints: then there is a newer one now.
            if not tries_left or all(path.exists() for path in found.sources):
                raise
    raise AssertionError("unreachable")


def find_weights(store: RunStore, number: int | None, *, allow_diverged: bool = False) -> Weights:
    state, kept = store.state(), CheckpointStore(store.checkpoints)
    last = next((item for item in kept.list()[-1:] if item.diverged), None)
    # Ranks that train alone may have left a good model even where one of them has diverged.
    useless = last is not None and len(last.diverged) == len(last.positions)
    if number is None and not useless and state.state in ("finished", "stopped") and store.model.is_file():
        return Weights((store.model,), f"the weights of step {state.step:,}, as the run left them")
    if number is not None:
        checkpoint = choose_checkpoint(store.checkpoints, str(number), store.dir.name, allow_diverged=True)
    else:
        checkpoint = last if last is not None else _newest(store, kept)
    if checkpoint.diverged and not allow_diverged:
        raise _diverged(store, kept, checkpoint)
    sources, whose = _parts(store, checkpoint)
    description = f"checkpoint {checkpoint.number}, step {checkpoint.step:,}{whose}"
    return Weights(sources, f"{description}; these weights are not finite" if checkpoint.diverged else description)


def _diverged(store: RunStore, kept: CheckpointStore, bad: Checkpoint) -> UsageError:
    good = [item for item in kept.list() if not item.diverged]
    cause = f"The weights of {store.dir.name} at step {bad.step:,} (checkpoint {bad.number}) are not finite."
    if not good:
        return refused(cause, "Train the run again, or export them anyway.", "--allow-diverged")
    number = good[-1].number
    instead = f"Export checkpoint {number} (step {good[-1].step:,}), or these anyway."
    return refused(cause, instead, f"--checkpoint {number}, or --allow-diverged")


def _newest(store: RunStore, kept: CheckpointStore) -> Checkpoint:
    checkpoint, damaged = kept.newest_valid()
    if checkpoint is None:
        why = f" ({damaged[0].reason})" if damaged else ""
        raise refused(
            f"{store.dir.name} has no weights: no checkpoint was saved yet{why}.",
            "Let it train until its first checkpoint, or stop it: then it saves one.",
        )
    return checkpoint


def _parts(store: RunStore, checkpoint: Checkpoint) -> tuple[tuple[Path, ...], str]:
    if not (found := checkpoint.weights()):
        raise refused(
            f"Checkpoint {checkpoint.number} holds no weights.", "Choose another checkpoint.", "--checkpoint N"
        )
    copies = {rank: checkpoint.weights(rank) for rank in checkpoint.positions}
    if len(found) > 1 or len(set(copies.values())) < 2:
        return found, ""
    losses = _losses(store, checkpoint)
    best = min(copies, key=lambda rank: (losses.get(rank, float("inf")), rank))
    why = f", validation loss {losses[best]:.4g}" if best in losses else ", as none was measured"
    return copies[best], f", rank {best}'s copy{why}"


def _losses(store: RunStore, checkpoint: Checkpoint) -> dict[int, float]:
    found: dict[int, float] = {}
    for line in MetricsLines(store.metrics).read():
        rank, step, loss = line.get("rank"), line.get("step"), line.get("val_loss")
        if line["event"] != "eval" or not isinstance(rank, int) or not isinstance(step, int):
            continue
        position = checkpoint.positions.get(rank)
        if position is not None and step <= position.step and isinstance(loss, int | float):
            found[rank] = float(loss)
    return found
