"""Notes on settings that were changed and do nothing in a run, read off the fields' declarations."""

from __future__ import annotations

from typing import Final

from core.config.fields import FieldSpec, Needs
from core.config.mode import Mode
from core.config.run_config import FIELDS
from core.launch.resolved import ResolvedRun

_NOTED_ELSEWHERE: Final = ("sync_every", "deepspeed_config")
"""By `core.launch.mode.not_as_asked` and `core.launch.preflight.check_engine`."""


def settings_without_effect(run: ResolvedRun) -> tuple[str, ...]:
    """One sentence for each setting that was changed and does nothing here."""
    config, recipe, there = run.config, run.recipe, run.has
    notes = []
    for spec in FIELDS:
        as_before = getattr(config, spec.name) in (spec.default, recipe.defaults.get(spec.name))
        unknown = recipe.self_contained and spec.name not in recipe.uses  # the program decides
        if as_before or unknown or spec.name in _NOTED_ELSEWHERE or _has_effect(spec, run.mode, there):
            continue
        where = spec.needs or f"in {' and '.join(spec.modes)} mode{'s' if len(spec.modes) > 1 else ''} only"
        notes.append(f"{spec.name} has an effect {where}. {spec.instead}".rstrip())
    if Needs.DDP in there and config.static_graph and config.find_unused_parameters:
        notes.append("static_graph finds unused parameters in the first step, so find_unused_parameters adds nothing.")
    return tuple(notes)


def _has_effect(spec: FieldSpec, mode: Mode, there: frozenset[Needs]) -> bool:
    return spec.needs in there if spec.needs is not None else not spec.modes or mode in spec.modes
