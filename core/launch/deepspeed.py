"""DeepSpeed's configuration: Rankdeck's own for each stage, a person's in its place, and what the run decides in it.

`resources/deepspeed_zero<stage>.json` are Rankdeck's own. In them, and in a person's, ``"auto"`` (or a key that is
left out) stands for what the run decides: stage, batch sizes, clipping, precision and offload. A person may also write
such a value; then it has to be the run's. That, and keys that would take Rankdeck's part, is checked before a rank
starts. Every other setting is DeepSpeed's to judge, which it does before the first step
(`workers.strategies.deepspeed.engine`): its settings change with its versions.
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
# DeepSpeed accepts these, and the run would train, or be saved, otherwise than Rankdeck says.
_REFUSED: Final[Mapping[str, tuple[str, ...]]] = {
    "Rankdeck decides the learning rate, the precision, the devices, the samples and the end of each step": (
        *("scheduler", "amp", "torch_autocast", "elasticity", "data_efficiency", "curriculum_learning"),
        *("managed_gradient_accumulation", "gradient_allreduce_op", "compression_training", "zenflow"),
    ),
    "Rankdeck's checkpoints hold fp32 weights, each number of them from one device": (
        *("pipeline", "tensor_parallel", "sequence_parallel_size", "zero_hpz_partition_size"),
        *("load_from_fp32_weights", "fp16_master_weights_and_grads", "bf16_master_weights_and_grads"),
        "bf16_optimizer_states",
    ),
}
_REASONS: Final = {name: reason for reason, names in _REFUSED.items() for name in names}


def own_text(stage: int) -> str:
    """Return Rankdeck's own configuration for a stage, as JSON text."""
    return (_RESOURCES / f"deepspeed_zero{stage}.json").read_text(encoding="utf-8")


def check_text(text: str, stage: int) -> ConfigError | None:
    """Return the error of a configuration by itself; None if it is fine."""
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
    """Return the configuration that a run gives to DeepSpeed.

    Args:
        config: The stage, a person's own text, precision, offload, the learning rate.
        batch: None leaves batch sizes to "auto".
        precision: The precision on the device; None if it is not known yet.
        clip_norm: The recipe's limit of gradients; None if it is not known yet.

    Raises:
        ConfigError: A setting is refused or contradicts the run.
    """
    stage = config.zero_stage
    written = _Written(config.deepspeed_config or own_text(stage), stage)
    written.check_optimizer(config.lr, config.options.get("weight_decay"))
    known = precision or (None if config.precision == AUTO else config.precision)
    written.check_precision(config.precision)
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


def check_run(config: RunConfig, batch: Batch, version: str) -> None:
    """Refuse settings that this stage or version of DeepSpeed lacks; raises as `effective_config`."""
    clip_norm = config.options.get("clip_norm")
    settings = effective_config(config, batch, clip_norm=clip_norm if isinstance(clip_norm, int | float) else None)
    # It has none on a CPU, and a loss scale of its own on a GPU.
    if config.precision == "fp16":
        step = "Choose precision bf16 or fp32, or the engine torch."
        raise ConfigError("precision", "DeepSpeed is not used in fp16.", step)
    offloaded = settings["zero_optimization"].get("offload_optimizer", {}).get("device") == "cpu"
    if config.zero_stage == 2 and offloaded and batch.accumulation > 2 and _numbers(version) < _ADDS_UP_ALL:
        raise ConfigError(
            "offload_optimizer",
            f"DeepSpeed {version} loses gradients in stage 2 with the optimizer on the CPU when a step adds up more "
            f"than two micro-batches (here {batch.accumulation}).",
            "Choose stage 1 or 3, the engine torch, or a larger micro-batch.",
        )


def without_open_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings` without "auto" and without offload to nowhere, for DeepSpeed's own defaults."""
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
        self.values = _parsed(text)
        self._check_refused((), self.values)
        self.decide(("zero_optimization", "stage"), stage)

    def decide(self, path: tuple[str, ...], value: Any) -> None:
        """Enter the run's value in place of "auto" or nothing; None leaves it open."""
        section = self._section(path)
        there = section.get(path[-1], AUTO)
        if there == AUTO or (there == value and type(there) is not bool):
            section[path[-1]] = there if value is None else value  # as the run has it: 1.0 for a person's 1
        elif value is not None and there is not value:
            raise refusal(
                f"{_dotted(path)} is {json.dumps(there)[:80]}, and the run's is {json.dumps(value)}",
                'Write "auto", or change the run\'s own setting.',
            )

    def decide_offload(self, name: str, wanted: bool) -> None:
        """Enter where state is kept that need not stay on the device; the file may ask for the CPU by itself."""
        path = ("zero_optimization", name, "device")
        there = self._section(path).get("device", AUTO)
        if there not in (AUTO, "cpu", "none"):
            what = f"{name} to {json.dumps(there)} is not possible here (nvme needs libaio)"
            raise refusal(what, 'Write "cpu", "none" or "auto".')
        if wanted or there == AUTO:
            self.decide(path, "cpu" if wanted else "none")

    def check_optimizer(self, lr: float, weight_decay: object) -> None:
        """Refuse another optimizer than the recipe's."""
        if "optimizer" not in self.values:
            return
        kind = str(self._section(("optimizer", "type")).get("type", "AdamW"))
        if kind.lower() != "adamw":
            raise refusal(
                f"It asks for the optimizer {kind}, and the recipe brings its own (AdamW)",
                "Leave the section optimizer out.",
            )
        for key, value in (("lr", lr), ("weight_decay", weight_decay)):
            self.decide(("optimizer", "params", key), value)

    def check_precision(self, precision: str) -> None:
        """Refuse a number format that the run's precision does not name: the loss is computed in it too."""
        for name in ("bf16", "fp16"):
            if self._section((name, "enabled")).get("enabled") is True and precision != name:
                what = f"It turns {name} on, and the run's precision is {precision}"
                raise refusal(what, f'Set the precision to {name}, or write "auto".')

    def _check_refused(self, path: tuple[str, ...], section: Mapping[str, Any]) -> None:
        for name, value in section.items():
            here = (*path, name)
            if name in _REASONS:
                raise refusal(f"{_dotted(here)} cannot be used: {_REASONS[name]}", "Leave it out.")
            if isinstance(value, Mapping):
                self._check_refused(here, value)

    def _section(self, path: tuple[str, ...]) -> dict[str, Any]:
        section = self.values
        for depth, name in enumerate(path[:-1], 1):
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise refusal(f"{_dotted(path[:depth])} is a section", "Write it in braces: { … }.")
        return section


def _parsed(text: str) -> dict[str, Any]:
    try:
        values = parse_json(text)
    except ParseError as error:
        raise refusal(f"It cannot be read as JSON: {error}", "Correct that line.") from None
    if not isinstance(values, dict):
        raise refusal("It is not a JSON object", 'Begin with {"zero_optimization": …}.')
    return values


def refusal(what: str, next_step: str) -> ConfigError:
    """Return the error for a setting of a configuration; `what`: the problem, without a full stop."""
    return ConfigError(FIELD, f"{what}.", next_step, title="The DeepSpeed configuration cannot be used")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)
