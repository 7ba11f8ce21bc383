"""The flags of `rankdeck train`, made from the config fields, and back: the shortest command that does the same.

It stands above `core.recipes.manifest`, because what a flag may leave out is a recipe's default.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.arguments import quoted
from core.config.config_file import read_config
from core.config.fields import UNSET, FieldSpec, FieldValue
from core.config.layers import (
    PLACE_KEYS,
    DeviceCount,
    Given,
    config_from_given,
    is_path,
    normalise,
    with_absolute_paths,
)
from core.config.lr_schedule import CONTINUE
from core.config.run_config import FIELD_BY_NAME, FIELDS, RunConfig
from core.errors import ConfigError
from core.paths import typed_path
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe, check_options, recipe_defaults
from core.recipes.outside_code import OutsideCodeError, outside_code
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import with_absolute_places

_AIOS_FLAGS: Final = (
    ("--ddp", None, "The same as --mode ddp."),
    ("--parallel-independent", None, "The same as --mode independent."),
    ("--cuda-ids", "0,1", "The same as --devices cuda:0,cuda:1."),
    ("--world-size", "N", "How many devices to use when --devices is auto."),
    ("--num-gpus", "N", "Number of GPUs to train on, -1 for all; without a GPU, number of CPU devices."),
    ("--halt-max-steps", "N", "Maximum reasoning steps per sample, for recipes that have it."),
    ("--num-episodes", "N", "Stop after this many episodes on each device, for recipes that have it."),
)

_MANY_EPOCHS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """The request of `rankdeck train`.

    Attributes:
        run_dir, runs_dir: The run's own folder and the folder of runs, if named.
        named: The settings that a flag or a file names.
    """

    config: RunConfig
    recipe: Recipe
    run_dir: Path | None = None
    runs_dir: Path | None = None
    count: DeviceCount | None = None
    named: frozenset[str] = frozenset()


def add_train_flags(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="A .toml, .yaml or .json file of settings; paths in it start from its folder."
    )
    add_devices_flag(parser)
    common = parser.add_argument_group("common settings")
    rare = parser.add_argument_group("more settings")
    for spec in FIELDS:
        if spec.name == "lr_schedule":
            continue  # of resumed runs only
        _add_field(common if spec.common else rare, spec)
    rare.add_argument("--keep-generations", dest="keep_checkpoints", help=argparse.SUPPRESS)  # 0.1
    rare.add_argument("--set", metavar="KEY=VALUE", action="append", help="A recipe's own field; may be repeated.")
    place = parser.add_argument_group("run folder")
    place.add_argument("--run-dir", metavar="PATH", help="The run's folder. Default: a new one under --runs-dir.")
    place.add_argument(
        "--runs-dir", metavar="PATH", help="The folder of runs. Default: in RANKDECK_HOME, or in your user folder."
    )
    aios = parser.add_argument_group("AI-OS aliases")
    for flag, metavar, text in _AIOS_FLAGS:
        if metavar is None:
            aios.add_argument(flag, action="store_true", default=None, help=text)
        else:
            aios.add_argument(flag, metavar=metavar, help=text)


def add_extension_flags(parser: argparse._ActionsContainer, changes: Collection[str]) -> None:
    """Add the flags of `rankdeck resume` that change a run."""
    add_fields(parser, ("steps", "epochs"))
    parser.add_argument("--dataset-file", metavar="PATH", help="The dataset's new path, if it has moved.")
    parser.add_argument(
        "--dataset-chunk-size",
        metavar="N",
        help="The chunk size of an AI-OS state file, if its folder name doesn't contain it.",
    )
    add_devices_flag(parser)
    add_fields(parser.add_argument_group("settings that may change (default: unchanged)"), changes)


def add_fields(parser: argparse._ActionsContainer, names: Collection[str]) -> None:
    for name in names:
        _add_field(parser, FIELD_BY_NAME[name], with_default=False)


def request_from_arguments(arguments: argparse.Namespace) -> TrainRequest:
    """Return the request of parsed flags: a config file's settings, with the flags over them.

    Raises:
        ConfigError: The file cannot be read, or a setting is unknown or has a value that cannot be used.
    """
    given = _given(arguments)
    config_file = None if arguments.config is None else typed_path(arguments.config).absolute()
    config, recipe, named = _complete(given, config_file)
    if config_file is not None:
        _check_config_file(config_file, config)
    if given.options and not recipe.fields:
        check_options(recipe, given.options)
    places = {key: Path(str(given.values[key])) if given.values.get(key) else None for key in PLACE_KEYS}
    return TrainRequest(config, recipe, places["run_dir"], places["runs_dir"], given.count, frozenset(named))


def _complete(given: Given, config_file: Path | None) -> tuple[RunConfig, Recipe, set[str]]:
    """What was given over the recipe's defaults, its paths absolute; the recipe, and the names of what was given."""
    name = given.values.get("recipe", RunConfig.__dataclass_fields__["recipe"].default)
    recipe = get_recipe(str(FIELD_BY_NAME["recipe"].check(name)))
    _check_aios_options(given, recipe)
    named = {key for key, value in given.values.items() if value is not None}
    base = RunConfig(**recipe_defaults(recipe, named, {**given.values, **given.options}))
    config = _until_episodes(config_from_given(given, base, recipe.fields), named)
    beside = [Path.cwd(), *([] if config_file is None else [config_file.parent])]
    if recipe.name == USER_SCRIPT:
        options = with_absolute_places(config.options, beside)
    else:
        options = _with_absolute_paths(config.options, recipe, beside)
    return config.replace(options=options), recipe, named


def _check_config_file(path: Path, config: RunConfig) -> None:
    """Refuse code that a received run names in its `run.toml`."""
    code = outside_code(config)
    if code is None or not (path.parent / "state.json").exists():
        return
    # The same paths as in `config`: in the file they may be relative, or begin with ~.
    alone, _, _ = _complete(_of_file(path), path)
    theirs = outside_code(alone)
    # Other arguments on the command line make a received program no program of the person's own.
    is_theirs = config.recipe == USER_SCRIPT and all(
        config.options.get(name) == alone.options.get(name) for name in ("script", "module")
    )
    if not (theirs is None or theirs.is_known if is_theirs else code.is_known_of(theirs)):
        raise OutsideCodeError(
            f"{path} belongs to a run that was not started on this machine. {code.text}",
            "Check that first. If you trust it, copy the file out of the run's folder and name the copy.",
        )


def _with_absolute_paths(
    options: Mapping[str, FieldValue], recipe: Recipe, folders: Sequence[Path]
) -> dict[str, FieldValue]:
    """Make paths among the options absolute: in the first folder that holds such a file, else in the first."""
    found = dict(options)
    for spec in recipe.fields:
        text = found.get(spec.name)
        if spec.type == "path" and is_path(text):
            places = [folder / typed_path(str(text)) for folder in folders]
            found[spec.name] = str(next((place for place in places if place.exists()), places[0]))
    return found


def _given(arguments: argparse.Namespace) -> Given:
    names = [spec.name for spec in FIELDS] + [*PLACE_KEYS, "devices", "set"]
    names += [flag.removeprefix("--").replace("-", "_") for flag, _, _ in _AIOS_FLAGS]
    flags = {name: getattr(arguments, name) for name in names if getattr(arguments, name, None) is not None}
    layer = with_absolute_paths(normalise(flags), Path.cwd())
    if arguments.config is None:
        return layer
    return layer.over(_of_file(typed_path(arguments.config)))


def _of_file(path: Path) -> Given:
    return with_absolute_paths(normalise(read_config(path), path), path.absolute().parent)


def _until_episodes(config: RunConfig, named: Collection[str]) -> RunConfig:
    """Let episodes end the run, not the recipe's one epoch, if nothing else was asked for."""
    if config.options.get("num_episodes") and not {"steps", "epochs"} & set(named):
        return config.replace(epochs=_MANY_EPOCHS)
    return config


def _check_aios_options(given: Given, recipe: Recipe) -> None:
    """Refuse flags of options that this recipe lacks."""
    own = {spec.name for spec in recipe.fields}
    for name in ("halt_max_steps", "num_episodes"):
        if name in given.values and name not in own:
            raise ConfigError(
                name,
                f"{_flag(name)} is given, but the recipe {recipe.title} has no such setting.",
                "Leave it out, or choose a recipe that has it.",
            )


def add_devices_flag(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--devices",
        metavar="LIST",
        help="auto, cpux2 (two CPU devices), cuda:0,cuda:1 or GPU UUIDs. See rankdeck devices.",
    )


def _add_field(group: argparse._ActionsContainer, spec: FieldSpec, with_default: bool = True) -> None:
    default = "" if spec.default is None or not with_default else f" Default: {spec.text(spec.default)}."
    text = f"{spec.help}{default}".replace("%", "%%")
    flag = _flag(spec.name)
    if spec.type == "bool":
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif spec.type == "variables":
        group.add_argument(flag, metavar="NAME=VALUE", action="append", help=f"{text} May be repeated.")
    else:
        group.add_argument(flag, metavar=_metavar(spec), help=text)


def _metavar(spec: FieldSpec) -> str:
    if spec.type == "choice":
        return "|".join(spec.choices)
    return {"int": "N", "float": "X", "path": "PATH"}.get(spec.type, "TEXT")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# --- and back --------------------------------------------------------------------------------------------


def to_command_line(config: RunConfig, recipe: Recipe | None = None) -> list[str]:
    """Return the shortest `rankdeck train` command that asks for `config`; `recipe` spares a look-up."""
    recipe, config = recipe or get_recipe(config.recipe), config.replace(lr_schedule=CONTINUE)

    def base(given: Collection[str]) -> RunConfig:
        chosen = {**config.as_dict(), **config.options}
        return RunConfig(**recipe_defaults(recipe, given, chosen)).replace(recipe=RunConfig().recipe)

    names = _needed(config, base)
    arguments = ["rankdeck", "train"]
    for spec in FIELDS:
        if spec.name in names:
            arguments += _flag_arguments(spec, getattr(config, spec.name))
        if spec.name == "mode" and "devices" in names:
            arguments += ["--devices", ",".join(config.devices)]
    return arguments + _option_arguments(config, recipe, base(names).options)


def command_text(arguments: Sequence[str], windows: bool = sys.platform == "win32") -> str:
    """Quote `arguments` for pasting: into sh, or into both PowerShell and cmd."""
    if not windows:
        return shlex.join(arguments)
    return " ".join(word if re.fullmatch(r"[\w\-./:\\=+]+", word) else quoted(word) for word in arguments)


def _needed(config: RunConfig, base: Callable[[Collection[str]], RunConfig]) -> set[str]:
    """Return the fields that must be named: those that differ if only the others are named."""
    names: set[str] = set()
    for _ in range(4):
        unnamed = base(names)
        changed = set()
        for name in (*FIELD_BY_NAME, "devices"):
            otherwise = base(names - {name}) if name in names else unnamed
            if getattr(config, name) != getattr(otherwise, name):
                changed.add(name)
        if changed == names:
            return names
        names = changed
    return set(FIELD_BY_NAME) | {"devices"}


def _flag_arguments(spec: FieldSpec, value: Any) -> list[str]:
    flag = _flag(spec.name)
    if isinstance(value, Mapping):
        return [word for name, item in value.items() for word in (flag, f"{name}={item}")]
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    text = spec.text(value) or (UNSET if spec.optional else "")
    return [f"{flag}={text}"] if text == "" or text.startswith("-") else [flag, text]


def _option_arguments(config: RunConfig, recipe: Recipe, defaults: Mapping[str, Any]) -> list[str]:
    specs = {spec.name: spec for spec in recipe.fields}
    arguments: list[str] = []
    for name in sorted({*config.options, *defaults}):
        value = config.options.get(name)
        if value != defaults.get(name):
            text = specs[name].text(value) if name in specs else str("" if value is None else value)
            arguments += ["--set", f"{name}={text}"]
    return arguments
