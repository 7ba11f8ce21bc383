"""Field groups: where each field of a recipe stands in the New run sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.state.draft_fields import form_fields
from core.config.fields import FieldSpec
from core.recipes.manifest import Recipe

WHAT: Final = "What"
WHERE: Final = "Where"
HOW: Final = "How"
BATCH: Final = "Batch & steps"
OPTIMIZER: Final = "Optimizer"
DATA: Final = "Data"
SAVING: Final = "Checkpoints & evaluation"
STOPPING: Final = "Stop when it is good"
SHARING: Final = "Sharing the work"
SYSTEM: Final = "System"

_PLACES: Final = {
    WHAT: ("model", "script", "module", "arguments", "python", "working_directory"),
    WHERE: ("precision",),
    HOW: ("steps", "epochs", "batch_size", "seq_len", "lr"),
    BATCH: ("grad_accum_steps", "global_batch_size"),
    OPTIMIZER: ("weight_decay", "beta1", "beta2", "warmup_steps", "min_lr_ratio", "clip_norm"),
    DATA: (
        *("text_column", "max_bad_rows", "allow_download", "val_fraction", "tokenizer_file", "documents"),
        *("samples_per_block", "dataset_chunk_size"),
    ),
    SAVING: (
        *("checkpoint_every_steps", "checkpoint_every_s", "keep_checkpoints", "disk_reserve"),
        *("eval_every", "sample_share"),
        *("val_batches", "sample_tokens", "sample_prompt", "sample_temperature", "sampled_evaluation"),
    ),
    STOPPING: ("early_stop_patience", "early_stop_min_delta", "stop_at", "max_hours", "max_kwh"),
    SHARING: (
        *("gradient_exchange", "static_graph", "find_unused_parameters", "broadcast_buffers", "balance"),
        *("work_stealing", "sync_method", "outer_lr", "outer_momentum", "backend", "collective_timeout_s"),
    ),
}
_PLACE_OF: Final = {name: place for place, names in _PLACES.items() for name in names}
IN_SIGHT: Final = (WHAT, WHERE, HOW)
"""The groups that are always shown; the others are under Advanced."""


def grouped_fields(recipe: Recipe) -> dict[str, list[FieldSpec]]:
    """A recipe's fields by the title of their group, in the order shown.

    What a recipe marks as common is in sight. Its other fields, as far as they are not those that most recipes have,
    form a group with the recipe's name.
    """
    own = {spec.name for spec in recipe.fields}
    order = (*IN_SIGHT, BATCH, OPTIMIZER, recipe.title, DATA, SAVING, STOPPING, SHARING, SYSTEM)
    groups: dict[str, list[FieldSpec]] = {title: [] for title in order}
    for spec in form_fields(recipe):
        groups[_place(spec, recipe.title, is_own=spec.name in own)].append(spec)
    return {title: _in_order(title, specs) for title, specs in groups.items() if specs}


def _place(spec: FieldSpec, title: str, *, is_own: bool) -> str:
    place = _PLACE_OF.get(spec.name)
    if place in IN_SIGHT:
        return place
    if is_own and spec.common:
        return HOW
    return place or (title if is_own else SYSTEM)


def _in_order(title: str, specs: Sequence[FieldSpec]) -> list[FieldSpec]:
    """Those named for the group first, in its order; the others as the recipe has them."""
    named = _PLACES.get(title, ())
    place = {name: number for number, name in enumerate(named)}
    return sorted(specs, key=lambda spec: place.get(spec.name, len(named)))
