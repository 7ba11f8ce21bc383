"""Field groups: where each field of a recipe stands in the New run sheet."""

from __future__ import annotations

from typing import Final

from app.state.draft_fields import form_fields
from core.config.fields import FieldSpec
from core.recipes.manifest import Recipe

WHAT: Final = "What"
WHERE: Final = "Where"
HOW: Final = "How"
IN_SIGHT: Final = (WHAT, WHERE, HOW)
"""The groups that are always shown; the others are under Advanced."""
_OF_RECIPE: Final = ""
_SYSTEM: Final = "System"
_GROUPS: Final = {
    WHAT: ("model",),
    WHERE: ("precision",),
    HOW: ("steps", "epochs", "batch_size", "seq_len", "lr"),
    "Batch & steps": ("grad_accum_steps", "global_batch_size", "keep_micro_batch"),
    "Optimizer": ("non_finite", "non_finite_limit"),
    _OF_RECIPE: (),
    "Data": ("data_files", "samples_per_block", "dataset_chunk_size"),
    "Checkpoints & evaluation": (
        *("checkpoint_every_steps", "checkpoint_every_s", "keep_checkpoints", "disk_reserve"),
        *("eval_every", "val_samples", "sample_share"),
    ),
    "Stop when it is good": ("early_stop_patience", "early_stop_min_delta", "stop_at", "max_hours", "max_kwh"),
    "Sharing the work": (
        *("gradient_exchange", "static_graph", "find_unused_parameters", "broadcast_buffers"),
        *("gradient_as_bucket_view", "balance"),
        *("work_stealing", "sync_method", "outer_lr", "outer_momentum", "backend", "collective_timeout_s"),
    ),
    _SYSTEM: (),
}
"""The settings of every run by heading, from the top down; a recipe's fields say their own (`FieldSpec.group`)."""
_GROUP_OF: Final = {name: title for title, names in _GROUPS.items() for name in names}
_ORDER: Final = {name: number for number, name in enumerate(_GROUP_OF)}


def grouped_fields(recipe: Recipe) -> dict[str, list[FieldSpec]]:
    """A recipe's fields by the title of their group, in the order shown.

    What a recipe marks as common is in sight. Its fields without a heading stand under the recipe's title, and
    headings that only it has below that.
    """
    own = [spec.group for spec in recipe.fields if spec.group not in _GROUPS]
    order = [name for title in _GROUPS for name in ((recipe.title, *own) if title == _OF_RECIPE else (title,))]
    groups: dict[str, list[FieldSpec]] = {title: [] for title in order}
    recipes = {spec.name for spec in recipe.fields}
    for spec in sorted(form_fields(recipe), key=lambda spec: _ORDER.get(spec.name, len(_ORDER))):
        title = _recipes_group(spec, recipe.title) if spec.name in recipes else _GROUP_OF.get(spec.name, _SYSTEM)
        groups[title].append(spec)
    return {title: specs for title, specs in groups.items() if specs}


def _recipes_group(spec: FieldSpec, title: str) -> str:
    if spec.common and spec.group not in IN_SIGHT:
        return HOW
    return spec.group or title
