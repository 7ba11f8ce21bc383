"""Sizes of models: counted by a program that builds one, or by a recipe's formula from its settings alone. Pure.

A recipe's `build_model(request)` makes a model without weights, whose parameters `core.measure.estimate.probe` counts.
`recipe.toml` has the formula, for a first verdict on memory long before a process could build the model::

    [parameters]
    weights_of = "model"                       # optional: a setting that may name a folder with trained weights
    frozen_when = ["training", "lora"]         # optional: next to nothing of the model is trained then
    half_when = ["lora_frozen", "bf16"]        # optional: frozen weights take two bytes each then
    [[parameters.terms]]                       # the products are added up
    product = [12, "n_layer", "n_embd", "n_embd", "/n_head"]
    when = ["model", "llama", "n_kv_head", "!0"]   # optional: as a field's `when`, pairs of it that must all hold
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config import RunConfig
from core.config.fields import FieldSpec
from core.held_files import open_binary
from core.parsing import ParseError, parse_json
from core.records import RecordError, Whole, read_record

# The limit of the safetensors format itself.
_MOST_HEADER_BYTES: Final = 100 << 20
Conditions = tuple[tuple[str, str], ...]


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


@dataclass(frozen=True, slots=True)
class ParameterFormula:
    """A `[parameters]` table.

    Attributes:
        terms: Factors of each product, with the conditions under which it counts.
        weights_of: A setting that may name a folder with weights; where it does, those are counted.
        frozen_when, half_when: Conditions under which weights are not trained, and take two bytes.
    """

    terms: tuple[tuple[tuple[str | float, ...], Conditions], ...] = ()
    weights_of: str = ""
    frozen_when: Conditions = ()
    half_when: Conditions = ()


@dataclass(frozen=True, slots=True)
class ModelSize:
    """A model's size by its formula.

    Attributes:
        count: Its parameters; of one that is adapted, `trained` is 0, the least there can be.
        weight_bytes: Of each parameter.
    """

    count: ParameterCount
    weight_bytes: int = 4


def read_formula(table: object) -> ParameterFormula | None:
    """The formula of a manifest; None where it has none. Raises `ValueError` with a sentence."""
    if table is None:
        return None
    if not isinstance(table, dict) or not table.keys() <= {"terms", "weights_of", "frozen_when", "half_when"}:
        raise ValueError("[parameters] must be a table with terms, weights_of, frozen_when and half_when.")
    terms = table.get("terms", [])
    if not isinstance(terms, list) or not all(isinstance(term, dict) for term in terms):
        raise ValueError("parameters.terms must be a list of [[parameters.terms]] tables.")
    products = []
    for term in terms:
        factors = term.get("product")
        fits = isinstance(factors, list) and all(isinstance(one, str | int | float) for one in factors)
        if not fits or not term.keys() <= {"product", "when"}:
            raise ValueError("A term of [parameters] needs a product of numbers and names of settings.")
        products.append((tuple(factors), _conditions(term.get("when", []))))
    return ParameterFormula(
        tuple(products),
        str(table.get("weights_of", "")),
        _conditions(table.get("frozen_when", [])),
        _conditions(table.get("half_when", [])),
    )


def model_size(formula: ParameterFormula | None, config: RunConfig) -> ModelSize | None:
    """The size of the model of these settings; None where the formula does not say."""
    if formula is None:
        return None
    values: dict[str, Any] = {**config.sorted_values()[0], **config.options}
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    total = _in_folder(texts.get(formula.weights_of, "")) if formula.weights_of else None
    if total is None:
        products = [_product(factors, values) for factors, when in formula.terms if _holds(when, texts)]
        if not products or None in products:
            return None
        total = round(math.fsum(product for product in products if product is not None))
    frozen = bool(formula.frozen_when) and _holds(formula.frozen_when, texts)
    half = frozen and bool(formula.half_when) and _holds(formula.half_when, texts)
    return ModelSize(ParameterCount(total, 0 if frozen else total), 2 if half else 4)


def _conditions(value: object) -> Conditions:
    if not isinstance(value, list) or len(value) % 2 or not all(isinstance(text, str) for text in value):
        raise ValueError("A when of [parameters] must be pairs of a setting's name and what it must hold.")
    return tuple(zip(value[::2], value[1::2], strict=True))


def _holds(when: Conditions, texts: Mapping[str, str]) -> bool:
    return all(FieldSpec(name, name, "str", when=(name, wanted)).matters(texts) for name, wanted in when)


def _product(factors: tuple[str | float, ...], values: Mapping[str, Any]) -> float | None:
    result = 1.0
    for factor in factors:
        name = str(factor).removeprefix("/")
        value = values.get(name) if isinstance(factor, str) else factor
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if isinstance(factor, str) and factor.startswith("/"):
            if not value:
                return None
            result /= value
        else:
            result *= value
    return result


def _in_folder(folder: str) -> int | None:
    """The weights in a folder's safetensors files, from their headers; None for none."""
    try:
        files = sorted(Path(folder).expanduser().glob("*.safetensors")) if folder.strip() else []
        return sum(map(_in_file, files)) if files else None
    except (OSError, ParseError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        # Whether they can be used is the recipe's to say.
        return None


def _in_file(path: Path) -> int:
    with open_binary(path) as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _MOST_HEADER_BYTES:
            raise ValueError(length)
        header = parse_json(file.read(length))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
