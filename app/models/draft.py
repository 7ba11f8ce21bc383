"""What the setup panel holds, as text and ticks, turned into a `RunConfig` or into what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.config.batch import Batch, resolve_batch
from core.config.command_line import command_text, to_command_line
from core.config.fields import FieldSpec, FieldValue
from core.config.run_config import FIELD_BY_NAME, FIELDS, RunConfig
from core.dataset import DatasetIdentity
from core.devices import Device, device_texts
from core.errors import ConfigError, RankdeckError
from core.launch_plan import resolve_mode
from core.platforms import Platform
from core.preflight import DEFAULT_MICRO_BATCH, samples_of
from core.recipes import Recipe, apply_recipe, recipe_defaults

OWN_PLACES: Final = ("recipe", "dataset_file", "mode", "zero_stage", "merge_policy", "merge_every_chunks")
"""Fields of `RunConfig` that have a place of their own in the panel and are no row of the form."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The setup panel's content. It may be wrong anywhere; `check_draft` says where.

    Attributes:
        recipe: The recipe's name.
        dataset: A file, a folder, or ``stdlib://``.
        devices: UUIDs of the ticked devices.
        mode: "auto" until the person picks one.
        zero_stage: 1 to 3.
        merge_policy: What independent ranks do at the end.
        merge_every: Text of "merge every N chunks"; empty is never.
        fields: The form's texts by field name; a field that is not in it has its default.
    """

    recipe: str = "minigpt"
    dataset: str = "stdlib://"
    devices: tuple[str, ...] = ()
    mode: str = "auto"
    zero_stage: int = 1
    merge_policy: str = "best"
    merge_every: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the settings."""
        return {**dataclasses.asdict(self), "devices": list(self.devices), "fields": dict(self.fields)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Draft:
        """What `as_dict` gave; a part of the wrong type is left at its default."""
        start = cls()
        kept: dict[str, Any] = {}
        for item in dataclasses.fields(cls):
            value, default = values.get(item.name), getattr(start, item.name)
            if item.name == "devices" and isinstance(value, list):
                kept["devices"] = tuple(str(uuid) for uuid in value)
            elif item.name == "fields" and isinstance(value, dict):
                kept["fields"] = {str(name): str(text) for name, text in value.items()}
            elif type(value) is type(default):
                kept[item.name] = value
        return cls(**kept)


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft held against the recipe, the devices and the platform.

    Attributes:
        config: What would be run; None while something is wrong.
        problems: What is wrong, by field.
        placeholders: What an empty field will be, by field.
        mode: The mode it will train in; None while that is not known.
        batch: The batch arithmetic; None while it does not add up.
        command: The command line that does the same; empty while something is wrong.
    """

    config: RunConfig | None
    problems: Mapping[str, RankdeckError]
    placeholders: Mapping[str, str]
    mode: str | None = None
    batch: Batch | None = None
    command: str = ""

    def steps_per_epoch(self, size_bytes: int, ranks: int) -> int | None:
        """Optimizer steps in one pass, as if each byte were a token (of one rank, in independent mode)."""
        if self.config is None or self.batch is None:
            return None
        identity = DatasetIdentity("", "file", 1, size_bytes, "")
        share = samples_of(identity, self.config) // (ranks if self.mode == "independent" else 1)
        return max(1, -(-share // self.batch.global_))


def form_fields(recipe: Recipe) -> tuple[FieldSpec, ...]:
    """The rows of the form: the common settings of every run, then the recipe's own."""
    return (*(spec for spec in FIELDS if spec.name not in OWN_PLACES), *recipe.fields)


def default_texts(recipe: Recipe) -> dict[str, str]:
    """What the form shows before anybody has typed: the recipe's defaults."""
    defaults = recipe_defaults(recipe)
    values = {spec.name: defaults.get(spec.name, spec.default) for spec in FIELDS if spec.name not in OWN_PLACES}
    values |= {spec.name: spec.default for spec in recipe.fields}
    return {spec.name: _text(spec, values[spec.name]) for spec in form_fields(recipe)}


def draft_from_config(config: RunConfig, available: list[Device]) -> Draft:
    """The draft that asks for `config` again; devices that are not there any more are left out."""
    known = {device.uuid for device in available}
    slots = [device.uuid for device in available if device.kind == "cpu"]
    chosen: list[str] = []
    for text in config.devices:
        if text.startswith("cpu:") and text.removeprefix("cpu:").isdecimal():
            chosen += slots[: int(text.removeprefix("cpu:"))]
        elif text in known:
            chosen.append(text)
    values: dict[str, FieldValue] = {spec.name: getattr(config, spec.name) for spec in FIELDS}
    texts = {name: _text(FIELD_BY_NAME[name], value) for name, value in values.items() if name not in OWN_PLACES}
    texts |= {name: "" if value is None else _plain(value) for name, value in config.options.items()}
    return Draft(
        recipe=config.recipe,
        dataset=config.dataset_file,
        devices=tuple(chosen),
        mode="auto" if config.mode == "single" else config.mode,
        zero_stage=config.zero_stage,
        merge_policy=config.merge_policy,
        merge_every=str(config.merge_every_chunks or ""),
        fields=texts,
    )


def check_draft(draft: Draft, recipe: Recipe, devices: list[Device], platform: Platform) -> CheckedDraft:
    """Holds a draft against everything that can be known at once, without touching a disk.

    Args:
        draft: What the panel holds.
        recipe: The chosen recipe.
        devices: The ticked devices.
        platform: This machine.
    """
    problems: dict[str, RankdeckError] = {}
    texts = {**default_texts(recipe), **draft.fields}
    values = _parsed(texts, recipe, problems)
    if not devices:
        problems["devices"] = ConfigError("devices", "No device is ticked.", "Tick at least one.")
    merge_every = _merge_every(draft, problems)
    if problems:
        return CheckedDraft(None, problems, _placeholders(None, None, recipe))
    own = {spec.name for spec in recipe.fields}
    try:
        asked = RunConfig(
            recipe=draft.recipe,
            dataset_file=draft.dataset,
            devices=device_texts(devices),
            mode=draft.mode if len(devices) > 1 else "auto",
            zero_stage=draft.zero_stage,
            merge_policy=draft.merge_policy,
            merge_every_chunks=merge_every,
            options={name: value for name, value in values.items() if name in own and value is not None},
        )
        config = apply_recipe(asked.replace(**{n: v for n, v in values.items() if n not in own}), recipe)
        mode = resolve_mode(config, devices, platform)
        batch = resolve_batch(config, 1 if mode == "independent" else len(devices), DEFAULT_MICRO_BATCH)
    except RankdeckError as error:
        problems[getattr(error, "field", "mode")] = error
        return CheckedDraft(None, problems, _placeholders(None, None, recipe))
    command = command_text(to_command_line(config, recipe))
    return CheckedDraft(config, {}, _placeholders(config, batch, recipe), mode, batch, command)


def _parsed(texts: Mapping[str, str], recipe: Recipe, problems: dict[str, RankdeckError]) -> dict[str, FieldValue]:
    values: dict[str, FieldValue] = {}
    for spec in form_fields(recipe):
        text = texts.get(spec.name, "")
        if spec.type == "str":
            # A blank at the end can matter (a prompt), so text is taken as it stands.
            values[spec.name] = None if spec.optional and not text else text
            continue
        try:
            values[spec.name] = spec.parse(text)
        except ConfigError as error:
            problems[spec.name] = error
    return values


def _merge_every(draft: Draft, problems: dict[str, RankdeckError]) -> int | None:
    try:
        value = FIELD_BY_NAME["merge_every_chunks"].parse(draft.merge_every)
    except ConfigError as error:
        problems["merge_every_chunks"] = error
        return None
    return value if isinstance(value, int) else None


def _placeholders(config: RunConfig | None, batch: Batch | None, recipe: Recipe) -> dict[str, str]:
    """What each field will be when it is left empty."""
    shown = {spec.name: _text(spec, spec.default) for spec in form_fields(recipe)}
    shown |= {"steps": "until the epochs are done", "epochs": "until the steps are done"}
    shown |= {"checkpoint_every_steps": "by the clock only", "model": "none", "log_file": "none"}
    if config is not None and config.steps is not None:
        shown["steps"] = str(config.steps)
    if batch is not None:
        shown["batch_size"] = str(batch.micro)
        shown["grad_accum_steps"] = str(batch.accumulation)
        shown["global_batch_size"] = str(batch.global_)
    return shown


def _text(spec: FieldSpec, value: FieldValue) -> str:
    return "" if value is None else spec.text(value)


def _plain(value: FieldValue) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
