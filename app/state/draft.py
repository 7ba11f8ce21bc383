"""Contents of the New run sheet, as text and ticks, turned into a `RunConfig` or into its errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.config.batch import Batch
from core.config.device_names import cpu_numbers, is_cpu, with_counts
from core.config.fields import FieldSpec, FieldValue
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, FIELDS, RunConfig
from core.config.sync import resolve_synchronisation
from core.data.dataset import NO_DATASET, STDLIB, DatasetIdentity, estimate_samples
from core.errors import ConfigError, PreflightError, RankdeckError
from core.launch.command_line import command_text, to_command_line
from core.launch.mode import check_cuda, recipe_platform
from core.launch.preflight import check_engine
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device, device_texts
from core.machine.platform import Platform
from core.recipes.manifest import Recipe, recipe_defaults

MODE_FIELDS: Final = (
    "zero_stage",
    "zero_engine",
    "offload_optimizer",
    "offload_parameters",
    "deepspeed_config",
    "sync_every",
    "merge_policy",
    "merge_every_chunks",
)
"""Fields of `RunConfig` that stand under the mode they belong to."""
OF_MODE: Final = {spec.name: spec.modes for spec in FIELDS if spec.modes and spec.name not in MODE_FIELDS}
"""Rows of the form that mean something in these modes only."""
OWN_PLACES: Final = ("recipe", "dataset_file", "mode", *MODE_FIELDS)
"""Fields of `RunConfig` that have a place of their own in the panel and are no row of the form."""

HOW: Final = {
    Mode.DDP: " together (DDP)",
    Mode.INDEPENDENT: " independently",
    Mode.ZERO: " with ZeRO",
    Mode.FSDP: " with FSDP",
}
"""How several devices train, by mode."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The sheet panel's content. It may be wrong anywhere; `check_draft` says where.

    Attributes:
        recipe: The recipe's name.
        dataset: A file, a folder, or ``stdlib://``.
        devices: UUIDs of the ticked devices.
        mode: "auto" until the person picks one.
        mode_fields: Texts of `MODE_FIELDS` by field name; one that is not in it has its default.
        fields: The form's texts by field name; a field that is not in it has its default.
    """

    recipe: str = "minigpt"
    dataset: str = "stdlib://"
    devices: tuple[str, ...] = ()
    mode: str = Mode.AUTO.value
    mode_fields: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Draft:
        """What `dataclasses.asdict` gave, from JSON; a part of the wrong type is left at its default."""
        start = cls()
        kept: dict[str, Any] = {}
        for item in dataclasses.fields(cls):
            value, default = values.get(item.name), getattr(start, item.name)
            if item.name == "devices" and isinstance(value, list):
                kept["devices"] = tuple(str(uuid) for uuid in value)
            elif item.name in ("fields", "mode_fields") and isinstance(value, dict):
                kept[item.name] = {str(name): str(text) for name, text in value.items()}
            elif isinstance(value, str) and isinstance(default, str):
                kept[item.name] = value
        return cls(**kept)


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft held against the recipe, the devices and the platform.

    Attributes:
        run: What would be trained; None while something is wrong.
        problems: What is wrong, by field.
        placeholders: What an empty field will be, by field.
        command: The command line that does the same; empty while something is wrong.
    """

    run: ResolvedRun | None
    problems: Mapping[str, RankdeckError]
    placeholders: Mapping[str, str]
    command: str = ""

    @property
    def config(self) -> RunConfig | None:
        """What would be asked for; None while something is wrong."""
        return None if self.run is None else self.run.config

    @property
    def mode(self) -> Mode | None:
        """The mode it will train in; None while that is not known."""
        return None if self.run is None else self.run.mode

    @property
    def batch(self) -> Batch | None:
        """The batch arithmetic; None while it does not add up, and for programs with batches of their own."""
        return None if self.run is None or self.run.recipe.self_contained else self.run.batch

    def steps_per_epoch(self, size_bytes: int) -> int | None:
        """Optimizer steps in one pass, as if each byte were a token (of one rank, in independent mode)."""
        if self.run is None or self.batch is None:
            return None
        config, identity = self.run.config, DatasetIdentity("", "file", 1, size_bytes, "")
        samples = estimate_samples(identity, config.seq_len, config.held_out)
        return self.run.steps_per_epoch(config.samples_per_block if self.run.recipe.own_samples else samples)


def form_fields(recipe: Recipe) -> tuple[FieldSpec, ...]:
    """The rows of the form: the common settings of every run, then the recipe's own.

    Of a recipe that runs a program its own come first, and only those common ones that mean something to it. The model
    stands among those used most where the recipe takes one, with a button to choose its folder; elsewhere it is left
    out.
    """
    left_out = OWN_PLACES if recipe.uses_model else {*OWN_PLACES, "model"}
    common = tuple(_model_field(spec) for spec in FIELDS if spec.name not in left_out)
    if recipe.self_contained:
        return (*recipe.fields, *(spec for spec in common if not recipe.uses or spec.name in recipe.uses))
    return (*common, *recipe.fields)


def _model_field(spec: FieldSpec) -> FieldSpec:
    return dataclasses.replace(spec, type="path", picks="folder", common=True) if spec.name == "model" else spec


def default_texts(recipe: Recipe) -> dict[str, str]:
    """What the form shows before anybody has typed: the recipe's defaults."""
    defaults = recipe_defaults(recipe)
    own = {spec.name for spec in recipe.fields}
    values = {
        spec.name: spec.default if spec.name in own else defaults.get(spec.name, spec.default)
        for spec in form_fields(recipe)
    }
    return {spec.name: _text(spec, values[spec.name]) for spec in form_fields(recipe)}


def default_mode_texts() -> dict[str, str]:
    """What stands under the modes before anybody has chosen."""
    return {name: _text(FIELD_BY_NAME[name], FIELD_BY_NAME[name].default) for name in MODE_FIELDS}


def draft_from_config(config: RunConfig, available: list[Device]) -> Draft:
    """The draft that asks for `config` again; devices that are not there any more are left out."""
    known = {device.uuid for device in available}
    named = [
        uuid
        for text in with_counts(config.devices)
        for uuid in ([f"cpu:{number}" for number in cpu_numbers(text)] if is_cpu(text) else [text])
    ]
    chosen = [uuid for uuid in named if uuid in known]
    values: dict[str, FieldValue] = {spec.name: getattr(config, spec.name) for spec in FIELDS}
    texts = {name: _text(FIELD_BY_NAME[name], value) for name, value in values.items() if name not in OWN_PLACES}
    texts |= {name: "" if value is None else _plain(value) for name, value in config.options.items()}
    return Draft(
        recipe=config.recipe,
        dataset=STDLIB if config.dataset_file == NO_DATASET else config.dataset_file,
        devices=tuple(chosen),
        mode=Mode.AUTO if config.mode == Mode.SINGLE else config.mode,
        mode_fields={name: _text(FIELD_BY_NAME[name], values[name]) for name in MODE_FIELDS},
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
    mode_texts = {**default_mode_texts(), **draft.mode_fields}
    without_meaning = settings_without_meaning(draft.mode, mode_texts, len(devices))
    texts = {name: text for name, text in draft.fields.items() if name not in without_meaning}
    values = _parsed({**default_texts(recipe), **texts}, recipe, problems)
    if not devices:
        problems["devices"] = ConfigError("devices", "No device is selected.", "Select at least one.")
    try:
        check_cuda(devices, recipe_platform(recipe, platform))
    except PreflightError as error:
        problems["devices"] = error
    shared = len(devices) > 1 and not recipe.self_contained
    mode_values = _parsed_mode_fields(draft.mode, mode_texts, problems) if shared else {}
    if problems:
        return CheckedDraft(None, problems, _placeholders(None, recipe))
    own = {spec.name for spec in recipe.fields}
    # A recipe that makes its samples itself reads a dataset that was chosen, not the one that stands there unasked.
    without_dataset = recipe.self_contained or (recipe.own_samples and draft.dataset == STDLIB)
    try:
        asked = RunConfig(
            recipe=draft.recipe,
            dataset_file=NO_DATASET if without_dataset else draft.dataset,
            devices=device_texts(devices),
            mode=Mode.read(draft.mode) if len(devices) > 1 else Mode.AUTO,
            **mode_values,
            options={name: value for name, value in values.items() if name in own and value is not None},
        )
        asked = asked.replace(**{n: v for n, v in values.items() if n not in own})
        run = resolve_on(asked, recipe, devices, platform)
        if not recipe.self_contained:
            check_engine(run)
            if run.mode == Mode.INDEPENDENT:
                resolve_synchronisation(run.config)
    except RankdeckError as error:
        problems[getattr(error, "field", "mode")] = error
        return CheckedDraft(None, problems, _placeholders(None, recipe))
    command = command_text(to_command_line(run.config, recipe))
    return CheckedDraft(run, {}, _placeholders(run, recipe), command)


def plan_text(checked: CheckedDraft, devices: Sequence[Device]) -> str:
    """What pressing Start will do on the ticked devices, in a sentence or two."""
    run = checked.run
    if run is None:
        return "Fix the marked settings first."
    config, on = run.config, _device_text(devices)
    if run.recipe.self_contained:
        program = str(config.options.get("script") or config.options.get("module")).replace("\\", "/")
        return f"Start runs {program.rpartition('/')[2]} on {on}."
    phrases = {STDLIB: " on Python's standard library,", NO_DATASET: ""}
    dataset = phrases.get(config.dataset_file, f" on {config.dataset_file},")
    text = f"Start trains {run.recipe.title}{dataset} on {on}{HOW.get(run.mode, '')}."
    return text + (" Nothing is downloaded." if config.dataset_file == STDLIB else "")


def _device_text(devices: Sequence[Device]) -> str:
    if devices and all(device.kind == "cpu" for device in devices):
        return f"{len(devices)} CPU device{'s' if len(devices) > 1 else ''}"
    return f"{len(devices)} devices" if len(devices) > 1 else devices[0].name if devices else "no device"


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


def _parsed_mode_fields(mode: str, texts: Mapping[str, str], problems: dict[str, RankdeckError]) -> dict[str, Any]:
    """What stands under the chosen mode; what belongs to another mode stays at its default."""
    values: dict[str, Any] = {}
    for name in fields_of_mode(mode, texts):
        try:
            values[name] = FIELD_BY_NAME[name].parse(texts[name])
        except ConfigError as error:
            problems[name] = error
    return values


def mode_changes(draft: Draft) -> dict[str, str]:
    """What the draft says of how the work is shared, as `core.resume.planner.plan_resume` takes changes."""
    texts = {**default_mode_texts(), **draft.mode_fields}
    changes = {"mode": draft.mode, **{name: texts[name] for name in fields_of_mode(draft.mode, texts)}}
    without = settings_without_meaning(draft.mode, texts, ranks=2)
    for name, modes in OF_MODE.items():
        if draft.mode in modes and name not in without:
            spec = FIELD_BY_NAME[name]
            changes[name] = draft.fields.get(name) or _text(spec, spec.default)
    return changes


def fields_of_mode(mode: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Which of `MODE_FIELDS` mean something in a mode; "auto" may become independent."""
    shown = Mode.INDEPENDENT if mode == Mode.AUTO else Mode.read(mode)
    return tuple(name for name in MODE_FIELDS if _matters(FIELD_BY_NAME[name], shown, texts))


def _matters(spec: FieldSpec, mode: Mode, texts: Mapping[str, str]) -> bool:
    """Whether a field means something in a mode, beside what other fields of that mode hold."""
    of_mode = {name: text for name, text in texts.items() if mode in FIELD_BY_NAME[name].modes}
    return mode in spec.modes and spec.matters(of_mode)


def settings_without_meaning(mode: str, texts: Mapping[str, str], ranks: int) -> frozenset[str]:
    """Rows of the form that are left out, and stay at their defaults.

    Args:
        mode: The mode that is shown; "auto" may become any.
        texts: Those of `MODE_FIELDS`.
        ranks: Devices that are ticked; one alone shares nothing.
    """
    if ranks == 1:
        return frozenset(OF_MODE)
    if mode == Mode.AUTO:
        return frozenset()
    return frozenset(name for name in OF_MODE if not _matters(FIELD_BY_NAME[name], Mode.read(mode), texts))


def _placeholders(run: ResolvedRun | None, recipe: Recipe) -> dict[str, str]:
    """What each field will be when it is left empty."""
    shown = {spec.name: _text(spec, spec.default) for spec in form_fields(recipe)}
    shown |= {"steps": "set by epochs", "epochs": "set by steps"}
    shown |= {"checkpoint_every_steps": "only by time", "model": "none", "log_file": "none"}
    if recipe.self_contained:
        shown["steps"] = "no limit"
    if run is not None and run.config.steps is not None:
        shown["steps"] = str(run.config.steps)
    if run is not None and not recipe.self_contained:
        shown["batch_size"] = str(run.batch.micro)
        shown["grad_accum_steps"] = str(run.batch.accumulation)
        shown["global_batch_size"] = str(run.batch.global_)
    return shown


def _text(spec: FieldSpec, value: FieldValue) -> str:
    return "" if value is None else spec.text(value)


def _plain(value: FieldValue) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
