"""Merge of independent ranks' copies at the end of a run.

Each rank's weights and their average are measured on the same held-out samples, and every figure is reported. The
average of copies that were trained apart is usually worse than either of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from torch import Tensor, nn

from core.errors import StateFileError
from core.protocol.messages import Merge, MergeDone
from workers.state_files import safetensors_files
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


def merge(order: Merge, session: Session, model: nn.Module, evaluation: Evaluation | None) -> None:
    """Measure the ranks' weights of a checkpoint and their average, and write the chosen ones beside them.

    `model` is borrowed for measuring and gets its own weights back. A rank whose weights are not finite is left out.
    Without an `evaluation` nothing can be compared, and rank 0's weights are taken.
    """
    folder, policy = Path(order.folder), session.config.merge_policy
    ranks = [_read(folder / f"weights_rank{rank}.safetensors") for rank in range(session.strategy.place.world_size)]
    diverged = [rank for rank, weights in enumerate(ranks) if not _is_finite(weights)]
    left_out = diverged if len(diverged) < len(ranks) else []
    candidates = {f"rank {rank}": weights for rank, weights in enumerate(ranks) if rank not in left_out}
    if len(candidates) > 1:
        candidates[AVERAGE] = average(list(candidates.values()))
    losses = _measure(candidates, session, model, evaluation)
    chosen = choose(losses, list(candidates), policy)
    safetensors_files.write(folder / MERGED_FILE, candidates[chosen])
    if policy == AVERAGE and AVERAGE in candidates and chosen != AVERAGE:
        safetensors_files.write(folder / AVERAGE_FILE, candidates[AVERAGE])
    session.reporter.event(
        "merge",
        checkpoint=order.checkpoint,
        policy=policy,
        chosen=chosen,
        val_losses=losses,
        diverged=diverged,
        warning=_WARNING if policy == AVERAGE and session.config.sync_every is None else None,
    )
    session.reporter.send(MergeDone(order.checkpoint, MERGED_FILE, chosen, _finite(losses)))


def average(ranks: Sequence[Weights]) -> Weights:
    return {name: mean([weights[name] for weights in ranks]) for name in ranks[0]}


def choose(losses: Mapping[str, float], candidates: Sequence[str], policy: str) -> str:
    """The candidate to export.

    Args:
        losses: Validation loss by candidate; may be empty when nothing could be measured.
        candidates: Names, ranks first.
        policy: "best" and "average" take the lowest loss, "none" the lowest among the ranks; without losses "average"
            takes the average, the others the first rank.
    """
    if policy == AVERAGE and AVERAGE in candidates and not losses:
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
    """Look for NaN alone: a buffer may well hold infinities, as a mask does."""
    return not any(bool(tensor.isnan().any()) for tensor in weights.values() if tensor.is_floating_point())


def _finite(losses: Mapping[str, float]) -> dict[str, float]:
    return {name: loss for name, loss in losses.items() if math.isfinite(loss)}
