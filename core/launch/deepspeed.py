"""DeepSpeed's configuration: Rankdeck's own for each stage, a person's in its place, and what the run decides in it.

`resources/deepspeed_zero<stage>.json` are Rankdeck's own. In them, and in a person's, ``"auto"`` (or a key that is
left out) stands for what the run decides: batch sizes, clipping, precision and offload. A person may also write such
a value; then it has to be the run's. That, and what Rankdeck refuses (a second optimizer or schedule, whatever
needs a compiler, MPI or libaio), is checked before a rank starts. Every other setting is DeepSpeed's to judge, which it
does before the first step (`workers.strategies.deepspeed.engine`): its settings change with its versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from core.config.batch import Batch
from core.config.run_config import RunConfig
from core.errors import ConfigError
from core.parsing import ParseError, parse_json
from core.paths import PACKAGE_FOLDER

AUTO: Final = "auto"
FIELD: Final = "deepspeed_config"
# Up to 0.18.9 the copy of the gradients on the CPU misses all micro-batches of a step but the first and the last.
_ADDS_UP_ALL: Final = (0, 19)
_RESOURCES: Final = PACKAGE_FOLDER / "resources"
_TITLE: Final = "The DeepSpeed configuration cannot be used"
# Where the run decides something; each has to be a JSON object.
_SECTIONS: Final = (
    ("zero_optimization",),
    ("zero_optimization", "offload_optimizer"),
    ("zero_optimization", "offload_param"),
    ("bf16",),
    ("fp16",),
    ("optimizer",),
    ("optimizer", "params"),
)
_NUMBERS: Final = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
)

_NOT_OURS: Final = "Rankdeck does that itself"
_REFUSED: Final[Mapping[str, str]] = {
    "scheduler": "the recipe decides the learning rate at each step",
    "amp": "precision is chosen in the run's own setting",
    "torch_autocast": "precision is chosen in the run's own setting",
    "aio": "it needs libaio, which Rankdeck does without",
    "checkpoint": _NOT_OURS,
    "load_universal_checkpoint": _NOT_OURS,
    "tensorboard": _NOT_OURS,
    "wandb": _NOT_OURS,
    "comet": _NOT_OURS,
    "csv_monitor": _NOT_OURS,
    "monitor_config": _NOT_OURS,
    "elasticity": "the devices of a run are chosen in Rankdeck",
    "autotuning": "it starts runs of its own",
    "managed_gradient_accumulation": "Rankdeck says where a step ends",
    "gradient_allreduce_op": "gradients are averaged, weighted by samples",
    "log_level": "DeepSpeed's warnings go to each rank's log",
    "compile": "it needs a compiler",
    "compression_training": "it needs a compiler",
    "zero_quantized_weights": "it needs a compiler",
    "zero_quantized_nontrainable_weights": "it needs a compiler",
    "zero_quantized_gradients": "it needs a compiler",
    "zenflow": "it needs a compiler",
    "nvme_path": "it needs libaio, which Rankdeck does without",
    "cpu_offload": "it is an old name: write offload_optimizer",
    "cpu_offload_param": "it is an old name: write offload_param",
    "data_efficiency": "the ledger decides which samples are trained",
    "curriculum_learning": "the ledger decides which samples are trained",
    "pipeline": "Rankdeck shares a model out by ZeRO only",
    "tensor_parallel": "Rankdeck shares a model out by ZeRO only",
    "sequence_parallel_size": "Rankdeck shares a model out by ZeRO only",
    "zero_hpz_partition_size": "Rankdeck keeps each number on one rank only",
    "elastic_checkpoint": _NOT_OURS,
    "load_from_fp32_weights": _NOT_OURS,
    "fp16_master_weights_and_grads": "the weights that are kept are fp32",
    "bf16_master_weights_and_grads": "the weights that are kept are fp32",
    "bf16_optimizer_states": "the weights that are kept are fp32",
}


def own_text(stage: int) -> str:
    """Rankdeck's own configuration for a stage, as JSON text."""
    return (_RESOURCES / f"deepspeed_zero{stage}.json").read_text(encoding="utf-8")


def check_text(text: str, stage: int) -> ConfigError | None:
    """What is wrong with a configuration by itself, whatever run it is for; its cause names the line. None: nothing."""
    try:
        _Written(text, stage)
    except ConfigError as error:
        return error
    return None


def effective_config(
    config: RunConfig,
    batch: Batch | None = None,
    *,
    precision: str | None = None,
    clip_norm: float | None = None,
) -> dict[str, Any]:
    """The configuration that a run gives to DeepSpeed.

    Args:
        config: What was asked: the stage, a person's own text, precision, offload, the learning rate.
        batch: How a step is shared out; None leaves batch sizes to "auto".
        precision: What "auto" came to on the device; None when it is not known yet.
        clip_norm: What the recipe clips gradients to; None when it is not known yet.

    Raises:
        ConfigError: A setting that Rankdeck refuses, or a value that contradicts the run; names the line.
    """
    stage = config.zero_stage
    written = _Written(config.deepspeed_config or own_text(stage), stage)
    written.check_optimizer(config.lr, config.options.get("weight_decay"))
    known = precision or (None if config.precision == AUTO else config.precision)
    _check_precision(written, config.precision)
    decided: dict[tuple[str, ...], Any] = {
        ("train_batch_size",): None if batch is None else batch.global_,
        ("train_micro_batch_size_per_gpu",): None if batch is None else batch.micro,
        ("gradient_accumulation_steps",): None if batch is None else batch.accumulation,
        ("gradient_clipping",): clip_norm,
        ("bf16", "enabled"): None if known is None else known == "bf16",
        ("fp16", "enabled"): None if known is None else known == "fp16",
        ("zero_force_ds_cpu_optimizer",): False,
        ("zero_allow_untested_optimizer",): True,
    }
    for path, value in decided.items():
        written.decide(path, value)
    written.decide_offload("offload_optimizer", config.offload_optimizer)
    if stage == 3:
        written.decide_offload("offload_param", config.offload_parameters)
    return {key: value for key, value in written.values.items() if key != "optimizer"}


def check_run(config: RunConfig, batch: Batch, on_cpu: bool, version: str) -> None:
    """Refuses what DeepSpeed cannot do, before anything is started.

    Raises:
        ConfigError: As `effective_config`; or a setting that this stage, this device or this version lacks.
    """
    clip_norm = config.options.get("clip_norm")
    settings = effective_config(config, batch, clip_norm=clip_norm if isinstance(clip_norm, int | float) else None)
    if config.precision == "fp16" and on_cpu:
        raise ConfigError(
            "precision",
            "DeepSpeed does not train in fp16 on the CPU.",
            "Choose precision bf16 or fp32, or the engine torch.",
        )
    offloaded = settings["zero_optimization"].get("offload_optimizer", {}).get("device") == "cpu"
    if config.zero_stage == 2 and offloaded and batch.accumulation > 2 and _numbers(version) < _ADDS_UP_ALL:
        raise ConfigError(
            "offload_optimizer",
            f"DeepSpeed {version} loses gradients in stage 2 with the optimizer on the CPU when a step adds up more "
            f"than two micro-batches (here {batch.accumulation}).",
            "Choose stage 1 or 3, the engine torch, or a larger micro-batch.",
        )


def without_open_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` for DeepSpeed itself: what still says "auto" is left to its default, offload to nowhere left out."""
    kept: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            if value.get("device") != "none":
                kept[key] = without_open_values(value)
        elif value != AUTO:
            kept[key] = value
    return kept


class _Written:
    """A configuration as it was written, checked by itself."""

    def __init__(self, text: str, stage: int) -> None:
        self._text = text
        self.values = self._parse()
        self._check_sections()
        self._check_refused((), self.values)
        self._check_decided()
        self._check_stage(stage)
        if self._on("fp16") and self._on("bf16"):
            raise self.wrong(("bf16",), "fp16 and bf16 are both turned on", "Turn one of them off.")

    # against the run

    def decide(self, path: tuple[str, ...], value: Any) -> None:
        """Puts the run's value where "auto" stands or nothing; None leaves it open."""
        section = self._section(path)
        there = section.get(path[-1], AUTO)
        if there == AUTO or (there == value and type(there) is not bool):
            section[path[-1]] = there if value is None else value  # as the run has it: 1.0 for a person's 1
        elif value is not None and there is not value:
            raise self.wrong(
                path,
                f"{_dotted(path)} is {json.dumps(there)}, and the run's is {json.dumps(value)}",
                'Write "auto", or change the run\'s own setting.',
            )

    def decide_offload(self, name: str, wanted: bool) -> None:
        """Where state that need not stay on the device is kept; the file may ask for it by itself."""
        path = ("zero_optimization", name, "device")
        if wanted or self._section(path).get("device", AUTO) == AUTO:
            self.decide(path, "cpu" if wanted else "none")

    def check_optimizer(self, lr: float, weight_decay: object) -> None:
        """The recipe's optimizer is used; a section may only repeat what it is."""
        section = self.values.get("optimizer", {})
        kind = str(section.get("type", "AdamW"))
        if kind.lower() != "adamw":
            raise self.wrong(
                ("optimizer", "type"),
                f"it asks for the optimizer {kind}, and the recipe brings its own (AdamW)",
                "Leave the section optimizer out.",
            )
        params = section.get("params", {})
        for key, value in (("lr", lr), ("weight_decay", weight_decay)):
            there = params.get(key, AUTO)
            if there != AUTO and value is not None and there != value:
                raise self.wrong(
                    ("optimizer", "params", key),
                    f"optimizer.params.{key} is {json.dumps(there)}, and the run's is {json.dumps(value)}",
                    'Write "auto", or change the run\'s own setting.',
                )

    def wrong(self, path: tuple[str, ...], what: str, next_step: str) -> ConfigError:
        return refusal(self._text, path, what, next_step)

    def turned_on(self) -> str | None:
        """The number format that the file itself turns on."""
        return next((name for name in ("bf16", "fp16") if self._on(name)), None)

    # by itself

    def _parse(self) -> dict[str, Any]:
        try:
            values = parse_json(self._text, pairs=self._without_repetition, constant=self._constant)
        except ParseError as error:
            place = f"line {error.line}, column {error.column}: it" if error.line is not None else "It"
            wrong = ConfigError(FIELD, f"{place} cannot be read as JSON: {error.problem}.", "Correct that line.")
            wrong.title = _TITLE
            raise wrong from None
        if not isinstance(values, dict):
            raise self.wrong((), "It is not a JSON object", 'Begin with {"zero_optimization": …}.')
        return values

    def _without_repetition(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise self.wrong((twice,), f"{twice} stands there twice", "Keep one of them.")
        return values

    def _constant(self, name: str) -> Any:
        raise self.wrong((), f"{name} is not a finite number", "Write a finite number.")

    def _check_sections(self) -> None:
        for path in _SECTIONS:
            holder: Any = self.values
            for name in path[:-1]:
                holder = holder.get(name, {})
            if not isinstance(holder.get(path[-1], {}), dict):
                raise self.wrong(path, f"{_dotted(path)} is a section", "Write it in braces: { … }.")

    def _check_refused(self, path: tuple[str, ...], section: Mapping[str, Any]) -> None:
        for name, value in section.items():
            here = (*path, name)
            if name in _REFUSED:
                raise self.wrong(here, f"{_dotted(here)} cannot be used: {_REFUSED[name]}", "Leave it out.")
            if isinstance(value, Mapping):
                self._check_refused(here, value)

    def _check_decided(self) -> None:
        for name in _NUMBERS:
            value = self.values.get(name, AUTO)
            if value != AUTO and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise self.wrong((name,), f"{name} is {json.dumps(value)[:80]}, not a number", "Write a number.")
        for name in self.values.get("optimizer", {}).get("params", {}):
            if name not in ("lr", "weight_decay", "torch_adam"):
                path = ("optimizer", "params", name)
                raise self.wrong(path, f"the recipe decides the optimizer's {name}", "Leave it out.")

    def _check_stage(self, stage: int) -> None:
        zero = self.values.setdefault("zero_optimization", {})
        there = zero.get("stage", AUTO)
        if there not in (AUTO, stage):
            raise self.wrong(
                ("zero_optimization", "stage"),
                f"it is for ZeRO stage {there}, and the run's is {stage}",
                f"Choose stage {there} for the run, or write {stage} here.",
            )
        zero["stage"] = stage
        if stage < 3 and "offload_param" in zero:
            raise self.wrong(
                ("zero_optimization", "offload_param"),
                f"offload_param means nothing in stage {stage}",
                "Leave it out, or use stage 3.",
            )
        for name in ("offload_optimizer", "offload_param"):
            device = zero.get(name, {}).get("device", AUTO)
            if device not in (AUTO, "cpu", "none"):
                raise self.wrong(
                    ("zero_optimization", name, "device"),
                    f"{name} to {json.dumps(device)} is not possible here (nvme needs libaio)",
                    'Write "cpu", "none" or "auto".',
                )

    def _on(self, name: str) -> bool:
        return self.values.get(name, {}).get("enabled") is True

    def _section(self, path: tuple[str, ...]) -> dict[str, Any]:
        section = self.values
        for name in path[:-1]:
            section = section.setdefault(name, {})
        return section


def refusal(text: str, path: tuple[str, ...], what: str, next_step: str) -> ConfigError:
    """The error for a setting of a configuration, with its line where the text holds it.

    Args:
        text: The configuration, JSON.
        path: The setting's sections and name, from outside in; outer ones may be left out.
        what: What is wrong, without a stop.
        next_step: A whole sentence.
    """
    line = _line(text, path)
    error = ConfigError(FIELD, f"{f'line {line}: ' if line is not None else ''}{what}.", next_step)
    error.title = _TITLE
    return error


def _line(text: str, path: tuple[str, ...]) -> int | None:
    """The line of a key, counted from 1: the first of that name behind its section's beginning."""
    position = 0
    for name in path:
        found = re.compile(re.escape(json.dumps(name)) + r"\s*:").search(text, position)
        if found is None:
            return None
        position = found.end()
    return text.count("\n", 0, position) + 1 if path else None


def _check_precision(written: _Written, precision: str) -> None:
    """A file that turns a number format on needs a run that says so too: the loss is computed in it as well."""
    name = written.turned_on()
    if name is not None and precision != name:
        raise written.wrong(
            (name, "enabled"),
            f"it turns {name} on, and the run's precision is {precision}",
            f'Set the precision to {name}, or write "auto".',
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)
