"""Parallel-independent: what becomes of the ranks' separate copies.

Each rank's weights and their average are measured on the same held-out samples, and every figure is reported.
Averaging copies that were trained apart is usually worse than either of them (`average` says so); averaged often,
during training, it can help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from torch import Tensor, nn

from core.errors import StateFileError
from core.protocol.messages import Merge, Merged, MergeDone, MergeReady
from workers.state_files import safetensors_files
from workers.state_files.saved_state import load_weights
from workers.state_files.slices import mean
from workers.strategies import SingleStrategy
from workers.training.evaluation import Evaluation
from workers.training.session import Session

MERGED_FILE: Final = "merged.safetensors"
AVERAGE_FILE: Final = "average.safetensors"
AVERAGE: Final = "average"
_WARNING: Final = (
    "The average of independently trained models is usually worse than the best of them; "
    "the merge policy 'best' keeps the best."
)

Weights = dict[str, Tensor]


class MergeRounds:
    """When a rank waits for a merge while it trains.

    Args:
        policy: "best", "average" or "none".
        every_chunks: Chunks of a rank's own between two merges; None merges at the end only.
        synchronised: Ranks that train in step have nothing to merge.

    Attributes:
        policy: As given.
        done: Rounds behind this rank; saved with its weights.
    """

    def __init__(self, policy: str, every_chunks: int | None, synchronised: bool) -> None:
        self.policy = policy
        self.done = 0
        self._every = None if synchronised or policy == "none" else every_chunks

    def due(self, chunks_done: int) -> bool:
        """Whether the next round is reached with `chunks_done` chunks."""
        return self._every is not None and chunks_done // self._every > self.done

    def ready(self, step: int) -> MergeReady:
        """What to tell the host on arriving at the round."""
        return MergeReady(self.done + 1, step)

    def take(self, order: Merged, model: nn.Module) -> None:
        """Takes up the merged weights; the optimizer keeps its own state."""
        path = Path(order.path)
        load_weights(safetensors_files.read(path)[0], model, path)
        self.done = order.round


def merge(
    order: Merge, session: Session, model: nn.Module, evaluation: Evaluation | None, policy: str, *, final: bool
) -> None:
    """Measures the ranks' weights of a checkpoint and their average, and writes the chosen ones beside them.

    `model` is borrowed for measuring and gets its own weights back. A rank whose weights are not finite is left out,
    and named in the event.

    Args:
        order: Which checkpoint.
        session: Reports the figures.
        model: The bare model.
        evaluation: None when nothing is held out: then nothing can be compared and rank 0's weights are taken.
        policy: "best", "average" or "none" (which exports the best rank's).
        final: True for what is exported, False for what the ranks train on with.

    Raises:
        StateFileError: A rank's weights cannot be read.
    """
    folder = Path(order.folder)
    ranks = [_read(folder / f"weights_rank{rank}.safetensors") for rank in range(session.strategy.place.world_size)]
    diverged = [rank for rank, weights in enumerate(ranks) if not _is_finite(weights)]
    left_out = diverged if len(diverged) < len(ranks) else []
    candidates = {f"rank {rank}": weights for rank, weights in enumerate(ranks) if rank not in left_out}
    if len(candidates) > 1:
        candidates[AVERAGE] = average(list(candidates.values()))
    losses = _measure(candidates, session, model, evaluation)
    chosen = choose(losses, list(candidates), policy, final=final)
    safetensors_files.write(folder / MERGED_FILE, candidates[chosen])
    if policy == AVERAGE and AVERAGE in candidates and chosen != AVERAGE:
        safetensors_files.write(folder / AVERAGE_FILE, candidates[AVERAGE])
    session.reporter.event(
        "merge",
        round=order.round,
        checkpoint=order.checkpoint,
        policy=policy,
        chosen=chosen,
        val_losses=losses,
        diverged=diverged,
        warning=_WARNING if policy == AVERAGE and session.config.sync_every is None else None,
    )
    session.reporter.send(MergeDone(order.round, order.checkpoint, MERGED_FILE, chosen, _finite(losses)))


def average(ranks: Sequence[Weights]) -> Weights:
    """The mean of the ranks' weights, tensor by tensor (`slices.mean`)."""
    return {name: mean([weights[name] for weights in ranks]) for name in ranks[0]}


def choose(losses: Mapping[str, float], candidates: Sequence[str], policy: str, *, final: bool) -> str:
    """The candidate to train on with, or to export.

    Args:
        losses: Validation loss by candidate; may be empty when nothing could be measured.
        candidates: Names, ranks first.
        policy: "average" takes the average, "best" with the lowest loss, "none" with the lowest among the ranks.
        final: What is exported is what was measured best, under "average" too; unmeasured, the policy's word counts.
    """
    if policy == AVERAGE and AVERAGE in candidates and not (final and losses):
        return AVERAGE
    allowed = [name for name in candidates if policy != "none" or name != AVERAGE]
    measured = [name for name in allowed if math.isfinite(losses.get(name, math.nan))]
    return min(measured, key=lambda name: losses[name]) if measured else allowed[0]


def _measure(
    candidates: Mapping[str, Weights], session: Session, model: nn.Module, evaluation: Evaluation | None
) -> dict[str, float]:
    if evaluation is None:
        return {}
    own = safetensors_files.snapshot(model.state_dict(keep_vars=True))
    alone = SingleStrategy(session.strategy.place)
    losses = {}
    try:
        for name, weights in candidates.items():
            model.load_state_dict(weights)
            losses[name], _ = evaluation.measure(model, alone)
    finally:
        model.load_state_dict(own)
    return losses


def _read(path: Path) -> Weights:
    try:
        return safetensors_files.read(path)[0]
    except StateFileError as error:
        raise StateFileError(
            f"The ranks cannot be merged: {error.cause}",
            "Every rank's weights are in the checkpoint's folder. Resume the run.",
        ) from error


def _is_finite(weights: Weights) -> bool:
    """Looks for NaN alone: a buffer may well hold infinities, as a mask does."""
    return not any(bool(tensor.isnan().any()) for tensor in weights.values() if tensor.is_floating_point())


def _finite(losses: Mapping[str, float]) -> dict[str, float]:
    return {name: loss for name, loss in losses.items() if math.isfinite(loss)}
