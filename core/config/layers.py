"""Settings layers: a config file's values and flags made into a `RunConfig`, with aliases and the AI-OS flags.

One layer is one `Given` (a file, a command line); a later layer wins over an earlier one key by key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from core.config.arguments import split_arguments
from core.config.config_file import MAX_FILE_BYTES, find_line, read_config, written_number
from core.config.device_names import count_devices
from core.config.fields import FieldSpec, FieldValue, is_unset
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.config.variables import FIELD, is_decided, read_variables
from core.errors import ConfigError
from core.paths import typed_path

# Keys that say where a run lives, not what it is: the command line reads them, `RunConfig` has no such field.
PLACE_KEYS: Final = ("run_dir", "runs_dir")

ALIASES: Final[Mapping[str, str]] = {
    "dataset": "dataset_file",
    "micro_batch_size": "batch_size",
    "gradient_accumulation_steps": "grad_accum_steps",
    "chunk_size": "dataset_chunk_size",
    "sequence_length": "seq_len",
    "learning_rate": "lr",
    "device": "devices",
    "set": "options",
    "keep_generations": "keep_checkpoints",  # 0.1
}
# Settings of earlier versions, which change nothing any more: their runs and config files are read as before.
_FORMER_KEYS: Final = (
    "keep_micro_batch", "max_kwh", "merge_every_chunks", "work_stealing",
    "nodes", "nic", "rdzv_endpoint", "master_addr", "master_port", "nodes_wait_s",
    "static_graph", "cudnn_benchmark", "expandable_segments", "outer_lr", "outer_momentum",
)  # fmt: skip
_TABLES: Final = ("options", "set", FIELD)
_AIOS_KEYS: Final = ("ddp", "parallel_independent", "cuda_ids", "world_size", "num_gpus")
_VAL_BATCHES: Final = FieldSpec("val_batches", "Validation batches", "int", None, 1, 1_000_000)
# Recipes that had that option: micro-batches of held-out samples that an evaluation measured at most.
_HAD_VAL_BATCHES: Final = ("minigpt", "actv1", "hf_causal_lm")
_ZERO_STAGES: Final[Mapping[str, int]] = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """Devices that were asked for by their number: which ones they are depends on the machine.

    Attributes:
        number: How many; -1: all; None: those that ``--cuda-ids`` named, or as many CPU devices where there is no GPU.
        flag: The flag that asks for GPUs; empty: any devices will do (``--world-size``).
    """

    number: int | None
    flag: str = ""


@dataclass(frozen=True)
class Given:
    """One layer of settings under their own names, AI-OS's flags translated, values unchecked.

    Attributes:
        values: `RunConfig` fields, `PLACE_KEYS`, and unknown keys that may be a recipe's.
        count: The devices' number, unless they are named.
        source: The file it stands in, for error messages.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    count: DeviceCount | None = None
    source: Path | None = None

    def over(self, earlier: Given) -> Given:
        count = self.count if self.count is not None or "devices" in self.values else earlier.count
        values = {**earlier.values, **self.values}
        if FIELD in earlier.values and FIELD in self.values:  # variables are laid over each other by name
            values[FIELD] = {**read_variables(earlier.values[FIELD]), **read_variables(self.values[FIELD])}
        return Given(values, {**earlier.options, **self.options}, count, self.source or earlier.source)


def normalise(mapping: Mapping[str, Any], source: Path | None = None) -> Given:
    """A file's or a command line's keys and values as a `Given`.

    Raises:
        ConfigError: A key stands there twice, under two of its names, or AI-OS flags contradict each other.
    """
    values: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in _flat(mapping):
        name = ALIASES.get(key.replace("-", "_"), key.replace("-", "_"))
        if name == "options":
            options.update(_options(value))
            continue
        if name in values:
            raise ConfigError(name, f"{key} is given twice.", f"Keep one line for {name}.")
        values[name] = value
    # 0.1: went back to the last checkpoint with half the learning rate.
    if values.get("non_finite") == "rollback":
        values["non_finite"] = "stop"
    _translate_script_environment(values, options)
    count = _num_gpus(values)
    if "cuda_ids" in values and "devices" not in values:
        ids = ",".join(text.removeprefix("cuda:") for text in device_texts(values["cuda_ids"]))
        count = DeviceCount(None, f"--cuda-ids {ids}")
    return Given(values, options, _translate_aios(values) or count, source)


def with_absolute_paths(given: Given, folder: Path) -> Given:
    """`given` with its paths made absolute: a run's host lives in another folder than the person who asked.

    Args:
        given: Paths in it are relative to `folder`; ``~`` is the home folder. Names and addresses stay. In place of
            a file of DeepSpeed settings its text is put.
        folder: The config file's folder, or the working folder for flags.

    Raises:
        ConfigError: The file of DeepSpeed settings cannot be read.
    """
    values = dict(given.values)
    for name in ("dataset_file", "log_file", *PLACE_KEYS):
        if is_path(values.get(name)) and not (name == "log_file" and is_unset(values[name])):
            values[name] = str(_absolute(values[name], folder))
    text = values.get("deepspeed_config")
    if isinstance(text, str) and text.strip() and not text.lstrip().startswith("{") and not is_unset(text):
        values["deepspeed_config"] = read_deepspeed_config(_absolute(text, folder))
    for name, marker in (("recipe", "recipe.toml"), ("model", "")):
        if is_path(values.get(name)):
            path = _absolute(values[name], folder)
            if (path / marker).exists():
                values[name] = str(path)
    return replace(given, values=values)


def read_deepspeed_config(path: Path) -> str:
    """Read a DeepSpeed configuration: it goes with the run, which may be started again elsewhere."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError("deepspeed_config", f"{path} is larger than 1 MiB.", "Name a JSON file of settings.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise ConfigError(
            "deepspeed_config",
            f"{path}: {why}.",
            "Name a JSON file of DeepSpeed settings.",
            option="--deepspeed-config FILE",
        ) from None


def is_path(text: object) -> bool:
    """Whether a setting's text names a file or folder of this machine: it is none of ``hf://``, ``stdlib://`` …"""
    return isinstance(text, str) and bool(text.strip()) and re.match(r"\W*(?!file:)[\w+.-]+://", text.lower()) is None


def _absolute(text: str, folder: Path) -> Path:
    path = typed_path(text)
    if PureWindowsPath(path).drive and not path.drive:
        # From a run.toml of another system: it is not here, and no folder of ours belongs before it.
        return path
    return (folder / path).absolute()


def config_from_given(given: Given, base: RunConfig, option_fields: Sequence[FieldSpec] = ()) -> RunConfig:
    """`base` (a recipe's defaults) with what was given laid over it, every value checked.

    Args:
        given: `PLACE_KEYS` in it are passed over.
        base: What holds where nothing was given.
        option_fields: The recipe's own fields; their names are also understood outside ``[options]``.

    Raises:
        ConfigError: An unknown key (with the nearest known one), or a value that can't be used; names file and line.
    """
    try:
        return _build(given, base, {spec.name: spec for spec in option_fields})
    except ConfigError as error:
        if given.source is None:
            raise
        line = find_line(given.source, error.field)
        place = f"{given.source}, line {line}" if line is not None else str(given.source)
        raise ConfigError(error.field, f"{place}: {error.cause}", error.next_step) from None


def config_from_mapping(given: Mapping[str, Any], source: Path | None = None) -> RunConfig:
    """A config file's values (`read_config`) as a checked `RunConfig`; see `config_from_given`."""
    return config_from_given(normalise(given, source), RunConfig())


def load_config(path: Path) -> RunConfig:
    """What a run's own config file (`to_toml`) asks for.

    Raises:
        ConfigError: It is missing, damaged, or from a newer version.
    """
    # Before there was a choice every file was trained on; its ledger and its tokens are of all of them.
    return config_from_mapping({"data_files": "all", **read_config(path)}, path)


def former_settings(path: Path) -> list[str]:
    """Return the keys of a run's config file that earlier versions had, and that change nothing any more."""
    return [name for name in normalise(read_config(path), path).values if name in _FORMER_KEYS]


def _build(given: Given, base: RunConfig, option_fields: Mapping[str, FieldSpec]) -> RunConfig:
    changes: dict[str, Any] = {}
    options = dict(base.options)
    if option_fields and given.values.get("recipe", base.recipe) in _HAD_VAL_BATCHES:
        option_fields = {_VAL_BATCHES.name: _VAL_BATCHES, **option_fields}
    for name, value in given.values.items():
        if name in (*PLACE_KEYS, *_FORMER_KEYS):
            continue
        if name == "devices":
            changes["devices"] = device_texts(value)
        elif name in FIELD_BY_NAME:
            changes[name] = _checked(FIELD_BY_NAME[name], _as_written(FIELD_BY_NAME[name], value, given.source))
        elif name in option_fields:
            options[name] = _option(name, _as_written(option_fields[name], value, given.source), option_fields)
        else:
            raise _unknown(name, [*FIELD_BY_NAME, *PLACE_KEYS, *ALIASES, *_AIOS_KEYS, "devices", *option_fields])
    for name, value in given.options.items():
        spec = option_fields.get(name)
        options[name] = _option(name, value if spec is None else _as_written(spec, value, given.source), option_fields)
    return _with_val_samples(base.replace(**changes, options=options))


def _option(name: str, value: Any, option_fields: Mapping[str, FieldSpec]) -> FieldValue:
    if name in option_fields:
        if option_fields[name].type == "str" and isinstance(value, str):
            # A recipe's text may be empty or end in a blank on purpose: a prompt.
            return value
        return _checked(option_fields[name], value)
    if option_fields:
        raise _unknown(name, list(option_fields))
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ConfigError(name, f"{name}: {value!r} is neither a number nor a text.", "Give a single value.")
    return value


def _as_written(spec: FieldSpec, value: Any, source: Path | None) -> Any:
    """A whole number that a file's parser took for one with decimals, as it stands in the file: ``1.000``."""
    if spec.type != "int" or not isinstance(value, float) or source is None:
        return value
    return written_number(source, spec.name, value) or value


def _with_val_samples(config: RunConfig) -> RunConfig:
    """An older version's option made into the samples that it measured."""
    if config.recipe not in _HAD_VAL_BATCHES or _VAL_BATCHES.name not in config.options:
        return config
    batches = _checked(_VAL_BATCHES, config.options[_VAL_BATCHES.name])
    options = {name: value for name, value in config.options.items() if name != _VAL_BATCHES.name}
    samples = config.val_samples
    if samples is None and config.batch_size is not None and isinstance(batches, int):
        samples = batches * config.batch_size
    return config.replace(options=options, val_samples=samples)


def _checked(spec: FieldSpec, value: Any) -> FieldValue:
    """`value` in its field's type; numbers written as text (command line, YAML's ``1e-3``) are read as numbers."""
    if isinstance(value, str):
        return spec.parse(value)
    return spec.check(value)


def device_texts(value: Any) -> tuple[str, ...]:
    """``"cuda:0, cuda:1"``, ``["GPU-…"]`` or ``[0, 1]`` as the tuple that `RunConfig.devices` holds.

    Raises:
        ConfigError: It names nothing, or holds what can't be a device.
    """
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    texts: list[str] = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise ConfigError(
                "devices", f"{item!r} is not a device.", "Name devices, for example cpux2 or cuda:0,cuda:1."
            )
        text = str(item).strip()
        texts.append(f"cuda:{text}" if text.isdecimal() else text)
    if not texts or not all(texts):
        what = "The list of devices is empty" if not any(texts) else "The list of devices has an empty place"
        raise ConfigError("devices", f"{what}.", "Name devices, for example cpux2 or cuda:0,cuda:1.")
    return tuple(texts)


def _translate_script_environment(values: dict[str, Any], options: dict[str, Any]) -> None:
    """Runs of older versions gave a script its variables as an option of its own, one line of ``NAME=VALUE`` words."""
    if values.get("recipe") != "script" or not isinstance(options.get("environment"), str):
        return
    variables = split_arguments(options.pop("environment"), FIELD)
    given = {
        name: value for name, _, value in (variable.partition("=") for variable in variables) if not is_decided(name)
    }
    values[FIELD] = {**given, **read_variables(values.get(FIELD, {}))}


# --- AI-OS's names ---------------------------------------------------------------------------------------


def _translate_aios(values: dict[str, Any]) -> DeviceCount | None:
    """Replaces AI-OS's keys in `values` by ours; returns the world size if the devices don't tell it already."""
    ddp, independent = (_switch(values, key) for key in ("ddp", "parallel_independent"))
    if ddp and independent:
        raise _contradiction("mode", "--ddp and --parallel-independent are both given")
    if ddp or independent:
        _set_mode(values, Mode.DDP if ddp else Mode.INDEPENDENT, "--ddp" if ddp else "--parallel-independent")
    stage = values.get("zero_stage")
    if isinstance(stage, str) and stage.strip().lower() in _ZERO_STAGES:
        _translate_zero(values, _ZERO_STAGES[stage.strip().lower()], bool(ddp))
    if "cuda_ids" in values:
        devices = device_texts(values.pop("cuda_ids"))
        if "devices" in values and device_texts(values["devices"]) != devices:
            raise _contradiction("devices", "--devices and --cuda-ids name different devices")
        values["devices"] = devices
    return _world_size(values)


def _switch(values: dict[str, Any], key: str) -> bool:
    spec = FieldSpec(key, "--" + key.replace("_", "-"), "bool", False, optional=True)
    return bool(_checked(spec, values.pop(key, None)))


def _set_mode(values: dict[str, Any], mode: str, flag: str) -> None:
    if values.get("mode", mode) not in (mode, Mode.AUTO):
        raise _contradiction("mode", f"--mode {values['mode']} and {flag} are both given")
    values["mode"] = mode


def _translate_zero(values: dict[str, Any], stage: int, ddp: bool) -> None:
    """ZeRO shards DDP's optimizer, so ``--ddp --zero-stage zero1`` is the mode zero."""
    if stage == 0:
        if values.get("mode") == Mode.ZERO:
            raise _contradiction("zero_stage", "--mode zero and --zero-stage none are both given")
        del values["zero_stage"]
        return
    if ddp:
        values["mode"] = Mode.ZERO
    _set_mode(values, Mode.ZERO, f"--zero-stage zero{stage}")
    values["zero_stage"] = stage


def _world_size(values: dict[str, Any]) -> DeviceCount | None:
    if "world_size" not in values:
        return None
    spec = FieldSpec("world_size", "World size", "int", None, 1, 65_536, optional=True)
    size = _checked(spec, values.pop("world_size"))
    if not isinstance(size, int):
        return None
    devices = device_texts(values["devices"]) if "devices" in values else ("auto",)
    if devices == ("auto",):
        return DeviceCount(size)
    count = count_devices(devices)
    if count != size:
        raise _contradiction("world_size", f"--world-size {size} is given, but the devices named are {count}")
    return None


def _num_gpus(values: dict[str, Any]) -> DeviceCount | None:
    spec = FieldSpec("num_gpus", "Number of GPUs", "int", None, -1, 65_536, optional=True)
    count = _checked(spec, values.pop("num_gpus", None))
    if not isinstance(count, int):
        return None
    if count == 0:
        raise ConfigError("num_gpus", "--num-gpus 0 requests no GPU.", "Give a number, -1 for all, or --devices cpux2.")
    for other in ("devices", "cuda_ids", "world_size"):
        if other in values:
            raise _contradiction("num_gpus", f"--num-gpus and --{other.replace('_', '-')} are both given")
    return DeviceCount(count, f"--num-gpus {count}")


def _contradiction(field_name: str, what: str) -> ConfigError:
    return ConfigError(field_name, f"Two settings contradict each other: {what}.", "Leave one of them out.")


# --- keys ------------------------------------------------------------------------------------------------


def _flat(mapping: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping) and key not in _TABLES:
            for inner, inner_value in value.items():
                if isinstance(inner_value, Mapping) and inner not in _TABLES:
                    raise ConfigError(
                        str(inner), f"[{key}.{inner}] is a section in a section.", "Sections are one level deep."
                    )
                yield str(inner), inner_value
        else:
            yield key, value


def _options(value: Any) -> dict[str, Any]:
    """``{"n_layer": 4}`` or ``["n_layer=4"]`` as names and values."""
    if isinstance(value, Mapping):
        return {str(name).replace("-", "_"): item for name, item in value.items()}
    options: dict[str, Any] = {}
    for text in [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [str(value)]:
        name, equals, item = str(text).partition("=")
        if not equals or not name.strip():
            raise ConfigError("options", f"{text!r} is not KEY=VALUE.", "For example: --set n_layer=4")
        options[name.strip().replace("-", "_")] = item
    return options


def _unknown(name: str, known: Iterable[str]) -> ConfigError:
    near = difflib.get_close_matches(name, sorted(set(known)), n=1)
    listed = "rankdeck train --help lists the settings, rankdeck recipes RECIPE a recipe's own."
    step = f"Did you mean {near[0]}?" if near else listed
    return ConfigError(name, f"There is no setting named {name!r}.", step)
