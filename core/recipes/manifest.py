"""Finds and validates recipes: folders with a `recipe.toml` (what the form asks) and a `train.py`.

A recipe is never imported here. A user's broken recipe is listed with its problem and breaks nothing else.

`recipe.toml`::

    format = "rankdeck-recipe"
    version = 1
    name = "minigpt"                       # the folder's name
    title = "MiniGPT"
    description = "One or two sentences."
    entry = "train.py"                     # optional
    program = "rank.py"                    # optional: run this file as the rank itself, instead of our own rank
    modes = ["single", "ddp"]              # optional: the modes it can be trained in
    exports = ["hf"]                       # optional: what `export(given)` in the entry file can make
    requires = ["transformers"]            # optional: packages it imports that Rankdeck itself does not need
    check = true                           # optional: check.py has `check(request)`, asked before a run is started
    options = "train.py"                   # optional: this file has the class `Options` (core.recipes.manifest_fields)
    own_samples = true                     # optional: an epoch is samples_per_block, not what a dataset comes to
    uses_model = true                      # optional: reads the common field `model`; so does one with a default for it
    [defaults]                             # optional: RunConfig fields
    steps = 300
    [[variants]]                           # optional: other defaults where fields hold these values, see FieldSpec.when
    when = { training = "lora" }
    defaults = { lr = 2e-4, weight_decay = 0.0 }
    [[fields]]                             # the recipe's own fields, see core.config.fields.FieldSpec
    name = "n_layer"
    label = "Layers"
    type = "int"
    default = 4
    [[heroes]]                             # optional: up to five figures for a run's header, see core.recipes.heroes
    metric = "loss"
    better = "lower"
    [parameters]                           # optional: how large the model is, see core.recipes.parameter_formula
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from core.config.config_file import MAX_FILE_BYTES
from core.config.fields import FieldSpec, FieldValue, matches
from core.config.mode import RESOLVED_MODES, Mode, mode_choices
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.errors import ConfigError, sentences
from core.held_files import read_all
from core.parsing import ParseError, decode_utf8, parse_toml
from core.paths import PACKAGE_FOLDER
from core.recipes.heroes import Hero, read_heroes
from core.recipes.manifest_fields import (
    ManifestError,
    find_difference,
    known_keys,
    names_text,
    nearest_name,
    read_fields,
)
from core.recipes.parameter_formula import ParameterFormula, read_formula

T = TypeVar("T", str, bool)

FORMAT: Final = "rankdeck-recipe"
# The file with `check(request)`.
CHECK: Final = "check.py"
VERSION: Final = 1
BUILT_IN: Final = PACKAGE_FOLDER / "workers" / "recipes"

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_MODULE: Final = re.compile(r"[^\W\d]\w*")
_MANIFEST_KEYS: Final = (
    "format", "version", "name", "title", "description", "entry", "program", "self_contained", "uses", "modes",
    "defaults", "fields", "exports", "requires", "check", "options", "own_samples", "uses_model",
    "heroes", "variants", "parameters",
)  # fmt: skip
_EXPORTS: Final = ("hf",)
_NOT_A_DEFAULT: Final = ("recipe", "mode", "strict", "log_file", "env")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe's manifest.

    Attributes:
        name: The folder's name; `RunConfig.recipe`.
        folder: Holds `recipe.toml` and the entry file.
        fields: The recipe's own fields; their values are `RunConfig.options`.
        defaults: Default values of `RunConfig` fields.
        program: A file that is run as each rank's process and speaks the protocol itself; empty for Rankdeck's own
            rank, which imports `entry`.
        self_contained: The program reads data and keeps weights of its own: no dataset is asked for, this Python
            needs no torch, nothing is merged or exported, and there is no falling back to one device.
        uses: The common fields that mean something to it, for forms; empty: all of them.
        problem: The reason why it cannot be used; empty when it can.
        exports: Formats of its own `export(given)`, besides those of every run.
        requires: Packages, by the names they are imported by, without which it cannot be trained.
        check: The file that is asked before a run is started; empty: none.
        checks_in_function: It has a function `check(request)`; otherwise it is a program, see `core.recipes.check`.
        own_samples: It makes its samples itself, whatever the dataset: an epoch is a block of them.
        uses_model: It reads `RunConfig.model`. Other recipes ignore it, which is said before a run starts.
        variants: Other defaults, of common fields and its own, each with the values of fields that bring them.
        heroes: The figures in its runs' header; empty: those of every recipe, or what a script reports.
        parameters: The formula of its model's size; None: only the model itself knows.
    """

    name: str
    title: str
    description: str
    folder: Path
    fields: tuple[FieldSpec, ...] = ()
    defaults: Mapping[str, FieldValue] = field(default_factory=dict)
    modes: tuple[Mode, ...] = RESOLVED_MODES
    entry: str = "train.py"
    program: str = ""
    self_contained: bool = False
    uses: tuple[str, ...] = ()
    problem: str = ""
    exports: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    check: str = ""
    checks_in_function: bool = False
    own_samples: bool = False
    uses_model: bool = False
    heroes: tuple[Hero, ...] = ()
    variants: tuple[tuple[Mapping[str, str], Mapping[str, FieldValue]], ...] = ()
    parameters: ParameterFormula | None = None


def recipe_defaults(
    recipe: Recipe, given: Collection[str] = (), chosen: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The defaults of a config of this recipe: `RunConfig` fields, and `options` with every field's default.

    Args:
        recipe: A usable recipe.
        given: Names of `RunConfig` fields that the person set. A default that would contradict one of them is
            left out: `steps` when `epochs` is given (and the reverse), the batch when a global batch is given.
        chosen: Values of fields, common ones and the recipe's own, that may bring other defaults (`Recipe.variants`).
    """
    options: dict[str, FieldValue] = {spec.name: spec.default for spec in recipe.fields if spec.default is not None}
    defaults: dict[str, FieldValue] = dict(recipe.defaults)
    held = {**defaults, **options, **{name: it for name, it in (chosen or {}).items() if it not in (None, "")}}
    for when, values in recipe.variants:
        if all(matches(str(held.get(name, "")), wanted) for name, wanted in when.items()):
            defaults |= {name: value for name, value in values.items() if name not in options}
            options |= {name: value for name, value in values.items() if name in options}
    common = {name: it for name, it in defaults.items() if name not in given and not _contradicts(name, given)}
    return {"recipe": recipe.name, **common, "options": options}


def apply_recipe(config: RunConfig, recipe: Recipe) -> RunConfig:
    """`config` with the recipe's defaults where a field is None, and its options checked and complete.

    A field with a default of its own (`lr`, `seq_len` …) is never None: a config of a user's own settings is
    built from `recipe_defaults` instead. Raises `ConfigError` for an option or mode that the recipe does not have.
    """
    if config.mode != Mode.AUTO:
        check_mode(recipe, config.mode)
    elif recipe.self_contained:
        # Several devices: one world, on every platform; one alone: single.
        config = config.replace(mode=Mode.DDP)
    given = {name for name in FIELD_BY_NAME if getattr(config, name) is not None}
    filled = {name: value for name, value in recipe.defaults.items() if name not in given}
    filled = {name: value for name, value in filled.items() if not _contradicts(name, given)}
    return config.replace(options=check_options(recipe, config.options), **filled)


def check_mode(recipe: Recipe, mode: Mode) -> None:
    if mode not in recipe.modes:
        raise ConfigError(
            "mode",
            f"{recipe.title} does not support {mode.label}.",
            f"Choose {mode_choices(recipe.modes)}.",
            option=f"--mode {'|'.join(recipe.modes)}",
        )


def check_options(recipe: Recipe, options: Mapping[str, FieldValue]) -> dict[str, FieldValue]:
    """The recipe's options, every one of them, checked; text (from ``--set``) is parsed."""
    specs = {spec.name: spec for spec in recipe.fields}
    for name in options:
        if name not in specs:
            next_step = nearest_name(name, specs) or (
                names_text(specs) if specs else "Leave it out: this recipe has no options of its own."
            )
            raise ConfigError(name, f"{recipe.title} has no option {name!r}.", next_step)
    checked: dict[str, FieldValue] = {}
    for name, spec in specs.items():
        value = options.get(name, spec.default)
        if spec.type == "str" and value == "":
            checked[name] = ""  # a text may be empty on purpose: no prompt
        elif isinstance(value, str) and spec.type in ("int", "float", "bool"):
            checked[name] = spec.parse(value)
        elif value is not None or name in options:
            checked[name] = spec.check(value)
    return {name: value for name, value in checked.items() if value is not None}


def _contradicts(name: str, given: Collection[str]) -> bool:
    if name in ("steps", "epochs"):
        return "steps" in given or "epochs" in given
    batch = {"batch_size", "grad_accum_steps", "global_batch_size"}
    # With a global batch given, micro-batch and accumulation are worked out from it (core.config.batch).
    return name in batch and ("global_batch_size" in given or len(batch.intersection(given)) > 1)


def broken_recipe(folder: Path, problem: str) -> Recipe:
    return Recipe(folder.name, folder.name, "", folder, problem=problem)


def read_recipe(folder: Path) -> Recipe:
    """The recipe in a folder; what is wrong with it is its `Recipe.problem`."""
    try:
        manifest = parse_toml(_manifest_text(folder / "recipe.toml"))
        return _recipe(folder, manifest)
    except FileNotFoundError:
        return broken_recipe(folder, "It has a train.py and no recipe.toml.")
    except OSError as error:
        return broken_recipe(folder, f"recipe.toml cannot be read ({error.strerror or error}).")
    except ParseError as error:
        return broken_recipe(folder, f"recipe.toml is not TOML ({error}).")
    except ManifestError as error:
        return broken_recipe(folder, str(error))


def _manifest_text(path: Path) -> str:
    if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
        raise ParseError("it is larger than 1 MiB")
    return decode_utf8(read_all(path)).removeprefix("\ufeff")


def _recipe(folder: Path, manifest: Mapping[str, Any]) -> Recipe:
    known_keys("recipe.toml", manifest, _MANIFEST_KEYS)
    if manifest.get("format") != FORMAT:
        raise ManifestError(f'format is {manifest.get("format")!r}; it must be "{FORMAT}".')
    if manifest.get("version") != VERSION:
        raise ManifestError(f"version is {manifest.get('version')!r}; this Rankdeck reads version {VERSION}.")
    name = _typed(manifest, "name", folder.name)
    if name != folder.name or not _NAME.fullmatch(name):
        raise ManifestError(f"name is {name!r}; it must be the folder's name, in small letters, digits, - and _.")
    program = _typed(manifest, "program", "")
    entry = _typed(manifest, "entry", program or "train.py")
    checks_in_function = manifest.get("check") is True
    check = CHECK if checks_in_function else _typed(manifest, "check", "")
    options = _typed(manifest, "options", "")
    for key, file in (("entry", entry), ("program", program), ("check", check), ("options", options)):
        if file and (Path(file).name != file or not (folder / file).is_file()):
            raise ManifestError(f"{key} is {file!r}, and there is no such file in the folder.")
    self_contained = _typed(manifest, "self_contained", False)
    if self_contained and not program:
        raise ManifestError("self_contained belongs to recipes with a program.")
    defaults = _defaults(manifest.get("defaults", {}))
    uses = _names(manifest, "uses", (*FIELD_BY_NAME, "devices").__contains__, "of common fields' names")
    modes = _names(manifest, "modes", RESOLVED_MODES.__contains__, f"out of {', '.join(RESOLVED_MODES)}")
    fields = read_fields(manifest.get("fields", []))
    try:
        heroes = read_heroes(manifest.get("heroes", []))
        parameters = read_formula(manifest.get("parameters"))
    except ValueError as error:
        raise ManifestError(str(error)) from None
    difference = find_difference(folder / options, fields) if options else ""
    if difference:
        raise ManifestError(difference)
    return Recipe(
        name=name,
        title=_typed(manifest, "title", name),
        description=_typed(manifest, "description", ""),
        folder=folder,
        fields=fields,
        defaults=defaults,
        modes=tuple(map(Mode.read, modes)) or RESOLVED_MODES,
        entry=entry,
        program=program,
        self_contained=self_contained,
        uses=uses,
        exports=_names(manifest, "exports", _EXPORTS.__contains__, f"out of {', '.join(_EXPORTS)}"),
        requires=_names(manifest, "requires", _MODULE.fullmatch, "of packages' names, as they are imported"),
        check=check,
        checks_in_function=checks_in_function,
        own_samples=_typed(manifest, "own_samples", False),
        uses_model=_typed(manifest, "uses_model", False) or "model" in (*defaults, *uses),
        heroes=heroes,
        variants=_variants(manifest.get("variants", []), fields),
        parameters=parameters,
    )


def _typed(table: Mapping[str, Any], key: str, default: T) -> T:
    """A text or a flag."""
    value = table.get(key, default)
    if not isinstance(value, type(default)):
        wanted = "text" if isinstance(default, str) else "true or false"
        raise ManifestError(f"{key} is {value!r}; it must be {wanted}.")
    return value


def _names(table: Mapping[str, Any], key: str, fits: Callable[[str], object], wanted: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) and fits(name) for name in value):
        raise ManifestError(f"{key} is {value!r}; it must be a list {wanted}.")
    return tuple(value)


def _variants(
    tables: object, fields: Sequence[FieldSpec]
) -> tuple[tuple[Mapping[str, str], Mapping[str, FieldValue]], ...]:
    specs = {spec.name: spec for spec in fields}
    found = []
    where = "[[variants]]"
    for table in tables if isinstance(tables, list) else [tables]:
        table = table if isinstance(table, dict) else {}
        when, values = table.get("when"), table.get("defaults")
        if not isinstance(when, dict) or not isinstance(values, dict):
            raise ManifestError(f"{where} must have tables `when` and `defaults`.")
        known_keys(where, table, ("when", "defaults"))
        known_keys(where, when, [*FIELD_BY_NAME, *specs])
        known_keys(where, values, [*(name for name in FIELD_BY_NAME if name not in _NOT_A_DEFAULT), *specs])
        try:
            checked = {name: (specs.get(name) or FIELD_BY_NAME[name]).check(value) for name, value in values.items()}
        except ConfigError as error:
            raise ManifestError(f"{where}: {sentences(error.cause, error.next_step)}") from None
        found.append(({name: str(wanted) for name, wanted in when.items()}, checked))
    return tuple(found)


def _defaults(table: object) -> dict[str, FieldValue]:
    if not isinstance(table, dict):
        raise ManifestError("[defaults] must be a table.")
    allowed = [name for name in FIELD_BY_NAME if name not in _NOT_A_DEFAULT]
    known_keys("[defaults]", table, allowed)
    try:
        return {name: FIELD_BY_NAME[name].check(value) for name, value in table.items()}
    except ConfigError as error:
        raise ManifestError(f"[defaults]: {sentences(error.cause, error.next_step)}") from None
