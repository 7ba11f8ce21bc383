"""Parameter counts: the size of the model that a recipe would train with given settings, found without its weights.

A recipe's `build_model(request)` makes it. The probe of the estimate calls that first (`core.measure.estimate.probe`),
on PyTorch's meta device, where a model has shapes and no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig
from core.records import RecordError, Whole, read_record


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """The size of a model.

    Attributes:
        total: All parameters; one that two layers share counts once.
        trained: With LoRA only a few.
    """

    total: Whole
    trained: Whole


def read_count(values: Mapping[str, Any]) -> ParameterCount | None:
    """The count in a program's answer; None for none."""
    try:
        return read_record(ParameterCount, values) if values else None
    except RecordError:
        return None


def depends_on(config: RunConfig) -> tuple[object, ...]:
    """The settings that a model can be built from; two configs alike in them have one parameter count."""
    return config.recipe, config.model, config.seq_len, config.dataset_file, sorted(config.options.items()), config.env
