"""Settings beside each other, or beside their defaults, with their fields' labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.compare.results import Row
from core.config.batch import resolve_batch
from core.config.fields import FieldSpec
from core.config.mode import Mode
from core.config.run_config import FIELDS, RunConfig
from core.errors import RankdeckError, StateFileError
from core.files.atomic import read_json
from core.formatting import UNKNOWN
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe, recipe_defaults
from core.run_folder.record import RunRecord
from core.run_folder.store import RunStore

DEVICES: Final = FieldSpec("devices", "Devices", "str")
MAX_TEXT: Final = 200
_ENVIRONMENT: Final = (
    ("torch", "PyTorch"),
    ("torch_cuda", "CUDA of PyTorch"),
    ("torch_rocm", "ROCm of PyTorch"),
    ("python", "Python"),
    ("devices", "Device names"),
    ("driver", "Driver"),
    ("os", "Operating system"),
    ("cpu", "CPU"),
    ("rankdeck", "Rankdeck"),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    values: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    specs: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that is not at its default; the default of a recipe that is gone is unknown."""

    name: str
    label: str
    text: str
    default: str


def changed_settings(config: RunConfig) -> tuple[ChangedSetting, ...]:
    fields: dict[str, FieldSpec] = {}
    own: dict[str, Any] = {}
    try:
        recipe = get_recipe(config.recipe)
    except RankdeckError:  # it is gone: all of its own settings may be of interest
        pass
    else:
        fields = {spec.name: spec for spec in recipe.fields}
        chosen = {**config.as_dict(), **config.options}
        plain = recipe_defaults(recipe, (), chosen)
        given = [spec.name for spec in FIELDS if getattr(config, spec.name) not in (None, plain.get(spec.name))]
        left = recipe_defaults(recipe, given, chosen).keys() | set(given)  # without `steps` where epochs are given
        own = {name: value for name, value in plain.items() if name in left}
    specs = [spec for spec in FIELDS if spec.name not in ("recipe", DEVICES.name)]
    pairs = [(spec, getattr(config, spec.name), own.get(spec.name, spec.default)) for spec in specs]
    pairs.insert(1, (DEVICES, config.devices, RunConfig().devices))
    defaults = own.get("options", {})
    pairs += [
        (fields.get(name) or FieldSpec(name, name, "str"), value, defaults.get(name, ""))
        for name, value in config.options.items()
    ]
    return tuple(
        ChangedSetting(spec.name, spec.label, _text(spec, value), _text(spec, default))
        for spec, value, default in pairs
        if _text(spec, value) != _text(spec, default)
    )


def read_settings(record: RunRecord) -> RunSettings:
    try:
        config = RunStore(record.path).config()
    except RankdeckError:
        return RunSettings()
    state = record.entry.state
    ranks = max(1, state.world_size) if state is not None else 1
    mode = Mode.read(state.mode) if state is not None else config.mode
    config, fields = _completed(config, ranks, mode)
    values: dict[str, Any] = config.sorted_values()[0] | dict(config.options)
    specs = (*FIELDS, DEVICES, *(fields.get(name) or FieldSpec(name, name, "str") for name in sorted(config.options)))
    texts = {spec.name: _text(spec, values.get(spec.name)) for spec in specs}
    if mode is not Mode.AUTO:  # as it was decided
        values["mode"] = mode.value
        texts["mode"] = f"{mode.label} × {ranks}" if ranks > 1 else mode.label
    return RunSettings({spec.name: values.get(spec.name) for spec in specs}, texts, specs)


def setting_rows(runs: Sequence[RunSettings]) -> tuple[Row, ...]:
    """Make the rows of all settings, those of the form first; two fields of one label name their units."""
    specs: dict[str, FieldSpec] = {}
    for run in runs:
        specs |= {spec.name: spec for spec in run.specs if spec.name not in specs}
    labels = [spec.label for spec in specs.values()]
    rows = []
    for name, spec in specs.items():
        label = f"{spec.label} ({spec.unit or name})" if labels.count(spec.label) > 1 else spec.label
        texts = tuple(run.texts.get(name, UNKNOWN) for run in runs)
        rows.append(Row(name, label, tuple(run.values.get(name) for run in runs), texts))
    return tuple(rows)


def _completed(config: RunConfig, ranks: int, mode: Mode) -> tuple[RunConfig, dict[str, FieldSpec]]:
    """Complete the settings by the recipe and the batch arithmetic; also return the recipe's own fields."""
    fields: dict[str, FieldSpec] = {}
    try:
        recipe = get_recipe(config.recipe)
        fields = {spec.name: spec for spec in recipe.fields}
        config = apply_recipe(config, recipe)
        batch = resolve_batch(config, mode.group_size(ranks), keep_global=True)
        config = config.replace(
            batch_size=batch.micro, grad_accum_steps=batch.accumulation, global_batch_size=batch.global_
        )
    except RankdeckError:
        # A recipe that is gone or was changed: the settings as they are written.
        pass
    return config, fields


def _text(spec: FieldSpec, value: Any) -> str:
    if value is None or value == "" or value == {}:
        return UNKNOWN
    if isinstance(value, Mode):
        return value.label
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and spec.name != "seed":
        value = f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    text = spec.text(value).replace("\n", ", ")
    return f"{text} {spec.unit}" if spec.unit else text


def read_environment(store: RunStore) -> dict[str, Any]:
    """Return what a run's `environment.json` says; nothing where it cannot be read."""
    try:
        document = read_json(store.environment)
    except StateFileError:
        return {}
    return document if isinstance(document, dict) else {}


def environment_rows(runs: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Make the rows of versions, devices and system; those without a value in any run are left out."""
    rows = []
    for name, label in _ENVIRONMENT:
        values = tuple(_device_names(run.get(name)) if name == "devices" else run.get(name) for run in runs)
        texts = tuple(UNKNOWN if value in (None, "") else str(value)[:MAX_TEXT] for value in values)
        rows.append(Row(name, label, values, texts))
    return tuple(row for row in rows if not row.is_empty)


def _device_names(value: object) -> str | None:
    """Return a text such as "2 × NVIDIA RTX 4090, CPU"."""
    devices = value if isinstance(value, list) else []
    names = Counter(str(device.get("name")) for device in devices if isinstance(device, dict))
    return ", ".join(f"{times} × {name}" if times > 1 else name for name, times in names.items()) or None
