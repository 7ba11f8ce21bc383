"""Contents of the New run sheet, as text and ticks, turned into a `RunConfig` or into its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.form.draft_fields import (
    MODE_FIELDS,
    OF_MODE,
    ROWS,
    default_mode_texts,
    default_texts,
    fields_of_mode,
    fields_without_effect,
    form_fields,
    given_text,
    is_given,
    plain_text,
    settings_without_meaning,
    text_of,
)
from core.config.batch import Batch
from core.config.device_names import cpu_numbers, is_cpu, with_counts
from core.config.fields import FieldValue
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, FIELDS, RunConfig
from core.config.sync import resolve_synchronisation
from core.data.dataset import NO_DATASET, STDLIB, DatasetIdentity, estimate_samples
from core.data.formats import TEXT_COLUMN
from core.data.hub import DownloadNeededError
from core.errors import ConfigError, PreflightError, RankdeckError, UsageError
from core.launch.command_line import command_text, to_command_line
from core.launch.mode import check_cuda, recipe_platform
from core.launch.preflight import check_engine, check_torch
from core.launch.resolved import ResolvedRun, resolve_on
from core.launch.run_length import samples_known
from core.machine.devices import Device, device_texts
from core.machine.platform import Platform
from core.recipes.manifest import Recipe, recipe_defaults
from core.records import RecordError, read_record
from core.run_folder.notes import RunNotes

LOOKING: Final = "Looking for devices…"
# The folder of runs, where what is wrong with it stands among the problems of fields.
RUNS_DIR: Final = "runs_dir"
_BATCH: Final = ("batch_size", "grad_accum_steps", "global_batch_size")
# Checks the other settings while no device can be used.
_STAND_IN: Final = Device("cpu:0", "cpu", 0, "CPU")


@dataclass(frozen=True, slots=True)
class Draft:
    """The sheet panel's content. It may be wrong anywhere; `check_draft` finds the errors.

    Attributes:
        recipe: The recipe's name.
        dataset: A file, a folder, or ``stdlib://``.
        devices: UUIDs of the ticked devices.
        mode: "auto" until the person picks one.
        mode_fields: Texts of `MODE_FIELDS` by field name; a missing one has its default.
        fields: The form's texts by field name; one that is empty or missing was not set and follows its default.
        name: Of the run; empty: its own name.
    """

    recipe: str = "minigpt"
    dataset: str = "stdlib://"
    devices: tuple[str, ...] = ()
    mode: str = Mode.AUTO.value
    mode_fields: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    name: str = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Draft:
        """Read the JSON of `dataclasses.asdict`; one that cannot be read is an untouched draft."""
        try:
            return read_record(cls, values)
        except RecordError:
            return cls()


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft checked with the recipe, the devices and the platform.

    Attributes:
        run: None while something is wrong.
        problems: Errors by field.
        placeholders: Values of empty fields, by field.
        command: The equivalent command line; empty while something is wrong.
        probe: The run with each wrong setting at its default, so that the other settings can be checked already; None
            where that is not enough.
        reasons: Why fields have no effect beside others, by field.
        waiting: The reason to wait, as a sentence; empty while there is none.
    """

    run: ResolvedRun | None
    problems: Mapping[str, RankdeckError]
    placeholders: Mapping[str, str]
    command: str = ""
    probe: ResolvedRun | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    waiting: str = ""

    @property
    def config(self) -> RunConfig | None:
        return None if self.run is None else self.run.config

    @property
    def mode(self) -> Mode | None:
        return None if self.run is None else self.run.mode

    @property
    def batch(self) -> Batch | None:
        """The batch arithmetic; None while it does not add up, and for programs with batches of their own."""
        return None if self.run is None or self.run.recipe.self_contained else self.run.batch

    @property
    def preview(self) -> ResolvedRun | None:
        """The run to preview the data with: with a wrong column too, or a download that was not allowed yet."""
        problem = self.problems.get("dataset_file")
        is_readable = problem is None or isinstance(problem, DownloadNeededError)
        if self.probe is None or not is_readable or not self.problems.keys() <= {"dataset_file", TEXT_COLUMN, RUNS_DIR}:
            return None
        return self.probe

    def steps_per_epoch(self, dataset: DatasetIdentity) -> int | None:
        """Count the steps of one pass (of one rank, in independent mode); None where the data must be read first."""
        if self.run is None or self.batch is None or not samples_known(self.run, dataset):
            return None
        config = self.run.config
        samples = estimate_samples(dataset, config.seq_len, config.held_out)
        return self.run.steps_per_epoch(config.samples_per_block if self.run.recipe.own_samples else samples)


def draft_from_config(config: RunConfig, available: list[Device]) -> Draft:
    """Make the draft of a config; devices that are gone are left out."""
    known = {device.uuid for device in available}
    named = [
        uuid
        for text in with_counts(config.devices)
        for uuid in ([f"cpu:{number}" for number in cpu_numbers(text)] if is_cpu(text) else [text])
    ]
    chosen = [uuid for uuid in named if uuid in known]
    values: dict[str, FieldValue] = {spec.name: getattr(config, spec.name) for spec in FIELDS}
    texts = {name: given_text(FIELD_BY_NAME[name], value) for name, value in values.items() if name in ROWS}
    texts |= {name: "" if value is None else plain_text(value) for name, value in config.options.items()}
    return Draft(
        recipe=config.recipe,
        dataset=STDLIB if config.dataset_file == NO_DATASET else config.dataset_file,
        devices=tuple(chosen),
        mode=Mode.AUTO if config.mode == Mode.SINGLE else config.mode,
        mode_fields={name: text_of(FIELD_BY_NAME[name], values[name]) for name in MODE_FIELDS},
        fields=texts,
    )


def check_draft(
    draft: Draft, recipe: Recipe, devices: list[Device], platform: Platform, *, looking: bool = False
) -> CheckedDraft:
    """Check a draft without touching a disk.

    Every problem is found, not the first alone: a wrong setting is replaced by its default, and the rest checked.

    Args:
        draft: The panel's content.
        recipe: The chosen recipe.
        devices: The ticked devices.
        platform: This machine.
        looking: Devices are still being looked for, so that none is ticked is not wrong.
    """
    problems: dict[str, RankdeckError] = {}
    _check_name(draft.name, problems)
    reasons = fields_without_effect(recipe, draft.fields)
    mode_texts = {**default_mode_texts(), **draft.mode_fields}
    left_out = settings_without_meaning(draft.mode, mode_texts, len(devices)) | reasons.keys()
    values = _parsed(recipe, {name: text for name, text in draft.fields.items() if name not in left_out}, problems)
    ranks = _usable_devices(devices, recipe, platform, looking, problems)
    shared = len(ranks) > 1 and not recipe.self_contained
    mode_values = _parsed_mode_fields(draft.mode, mode_texts, problems) if shared else {}
    if not recipe.self_contained:
        try:
            check_torch(platform)
        except PreflightError as error:
            problems["recipe"] = error
    attempt = _Attempt(draft, recipe, ranks, platform, values, mode_values, Mode.read(draft.mode))
    probe = attempt.resolve(problems)
    placeholders, waiting = _placeholders(probe, recipe), LOOKING if looking else ""
    if problems or waiting or probe is None:
        return CheckedDraft(None, problems, placeholders, "", probe, reasons, waiting)
    command = command_text(to_command_line(probe.config, recipe))
    return CheckedDraft(probe, {}, placeholders, command, probe, reasons)


@dataclass(slots=True)
class _Attempt:
    """A draft that is put right field by field until it makes a run.

    Attributes:
        devices: At least one.
        values: Typed values by field, as far as they can be read.
        mode_values: The same of the fields under the mode.
    """

    draft: Draft
    recipe: Recipe
    devices: list[Device]
    platform: Platform
    values: dict[str, FieldValue]
    mode_values: dict[str, Any]
    mode: Mode

    def resolve(self, problems: dict[str, RankdeckError]) -> ResolvedRun | None:
        """Resolve the run; wrong settings are left at their defaults and added to `problems`."""
        unread = frozenset(problems)
        while True:
            try:
                return self._resolved()
            except RankdeckError as error:
                name = str(getattr(error, "field", "")) or "mode"
                # With a batch number that cannot be read, what is said of the others is about its default.
                if name not in unread and not (name in _BATCH and unread.intersection(_BATCH)):
                    problems.setdefault(name, error)
                if not self._put_right(name):
                    return None

    def _resolved(self) -> ResolvedRun:
        draft, recipe, devices = self.draft, self.recipe, self.devices
        own = {spec.name for spec in recipe.fields}
        # A recipe that makes its samples itself reads a dataset that was chosen, not the one that stands there unasked.
        without_dataset = recipe.self_contained or (recipe.own_samples and draft.dataset == STDLIB)
        given = {name: value for name, value in self.values.items() if name not in own}
        base = recipe_defaults(recipe, [name for name, value in given.items() if value is not None], self.values)
        options = base["options"] | {name: value for name, value in self.values.items() if name in own}
        asked = RunConfig(
            **{
                **base,
                "recipe": draft.recipe,
                "dataset_file": NO_DATASET if without_dataset else draft.dataset,
                "devices": device_texts(devices),
                "mode": self.mode if len(devices) > 1 else Mode.AUTO,
                **self.mode_values,
                **given,
                "options": {name: value for name, value in options.items() if value is not None},
            }
        )
        run = resolve_on(asked, recipe, devices, self.platform)
        if not recipe.self_contained:
            check_engine(run)
            if run.mode.is_apart:
                resolve_synchronisation(run.config)
        return run

    def _put_right(self, name: str) -> bool:
        """Leave a setting at its default; False where that is not possible."""
        if name in self.values:
            del self.values[name]
        elif name in self.mode_values:
            del self.mode_values[name]
        elif name == "devices" and len(self.devices) > 1:
            self.devices = self.devices[:1]
        elif name == "mode" and self.mode != Mode.AUTO:
            self.mode = Mode.AUTO
        else:
            return False
        return True


def _check_name(name: str, problems: dict[str, RankdeckError]) -> None:
    try:
        RunNotes().renamed(name)
    except UsageError as error:
        problems["name"] = error


def _usable_devices(
    devices: list[Device], recipe: Recipe, platform: Platform, looking: bool, problems: dict[str, RankdeckError]
) -> list[Device]:
    """Return the ticked devices, or one to check the other settings with where those cannot be used."""
    if not devices:
        if not looking:
            problems["devices"] = ConfigError("devices", "No device is selected.", "Select at least one.")
        return [_STAND_IN]
    try:
        check_cuda(devices, recipe_platform(recipe, platform))
    except PreflightError as error:
        problems["devices"] = error
        return [_STAND_IN]
    return devices


def _parsed(recipe: Recipe, texts: Mapping[str, str], problems: dict[str, RankdeckError]) -> dict[str, FieldValue]:
    """Parse the typed texts, by field; fields left at their default are not in it."""
    values: dict[str, FieldValue] = {}
    defaults = default_texts(recipe)
    for spec in form_fields(recipe):
        text = texts.get(spec.name)
        if text is None or not is_given(spec, text, defaults[spec.name]):
            if defaults[spec.name] or spec.optional or spec.type in ("str", "variables", "bool"):
                continue
            text = ""  # it has no default, so it must be given
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
    """Parse settings of the chosen mode; those of other modes stay at their defaults."""
    values: dict[str, Any] = {}
    for name in fields_of_mode(mode, texts):
        try:
            values[name] = FIELD_BY_NAME[name].parse(texts[name])
        except ConfigError as error:
            problems[name] = error
    return values


def mode_changes(draft: Draft) -> dict[str, str]:
    """Return the draft's mode and its settings, as `core.resume.planner.plan_resume` takes changes."""
    texts = {**default_mode_texts(), **draft.mode_fields}
    changes = {"mode": draft.mode, **{name: texts[name] for name in fields_of_mode(draft.mode, texts)}}
    without = settings_without_meaning(draft.mode, texts, ranks=2)
    for name, modes in OF_MODE.items():
        if draft.mode in modes and name not in without:
            spec = FIELD_BY_NAME[name]
            changes[name] = draft.fields.get(name) or text_of(spec, spec.default)
    return changes


def _placeholders(run: ResolvedRun | None, recipe: Recipe) -> dict[str, str]:
    """Return the value of each field when it is left empty."""
    config = None if run is None else run.config
    chosen = {} if config is None else {**config.as_dict(), **config.options}
    defaults = default_texts(recipe, chosen)
    shown = {spec.name: defaults[spec.name] or spec.empty for spec in form_fields(recipe)}
    if recipe.self_contained:
        shown["steps"] = "no limit"
    if run is not None and not recipe.self_contained:
        shown["steps"] = "set by epochs" if run.config.steps is None else str(run.config.steps)
        shown["batch_size"] = str(run.batch.micro)
        shown["grad_accum_steps"] = str(run.batch.accumulation)
        shown["global_batch_size"] = str(run.batch.global_)
    return shown
