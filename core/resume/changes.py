"""What is different when a run goes on: settings that may be given anew, in words, and what cannot be carried along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.checkpoints.state_header import read_values
from core.checkpoints.store import Generation
from core.config.batch import Batch, resolve_batch
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.errors import ConfigError, StateFileError
from core.launch.resolved import DEFAULT_MICRO_BATCH
from core.parsing import parse_json

_HOW: Final = (
    "lr", "mode", "zero_stage", "zero_engine", "offload_optimizer", "offload_parameters", "deepspeed_config",
    "gradient_exchange", "static_graph", "find_unused_parameters", "broadcast_buffers", "backend",
    "collective_timeout_s", "balance", "work_stealing", "sync_every", "sync_method", "outer_lr", "outer_momentum",
    "precision", "merge_policy", "merge_every_chunks", "cudnn_benchmark", "expandable_segments", "env",
)  # fmt: skip
_BATCH: Final = ("batch_size", "grad_accum_steps", "global_batch_size")
CHANGES: Final = (*_HOW, *_BATCH)
"""Settings that say how the work is shared, and the learning rate: each may be another one when a run goes on."""

_EFFECTS: Final[Mapping[str, str]] = {
    "zero_stage": "The sharded state is redistributed; its values stay the same.",
    "zero_engine": "Weights and optimizer state stay the same.",
    "gradient_exchange": "Affects only what is sent from here on.",
    "sync_every": "Affects synchronisation from here on.",
    "precision": "The weights stay the same; steps are computed differently from here on.",
    "merge_every_chunks": "The chunks until the next merge are counted from here on.",
}


def change_lines(
    before: RunConfig, now: RunConfig, then_on: tuple[str, int], now_on: tuple[str, int]
) -> tuple[str, ...]:
    """What is not as it was, one sentence each; modes and devices have a line of their own in the plan.

    Args:
        before: What was asked of the run so far, the recipe's defaults filled in.
        now: What is asked of it now.
        then_on: The mode it was trained in, resolved, and the number of ranks.
        now_on: The mode and the number of ranks to come.
    """
    lines = []
    for name in _HOW:
        spec, old, new = FIELD_BY_NAME[name], getattr(before, name), getattr(now, name)
        if name == "mode" or old == new:
            continue
        if name == "deepspeed_config":
            lines.append(f"{spec.label}: {'changed' if new else 'as Rankdeck has them for this stage'}.")
            continue
        if name == "env":  # the names only: a value may be a password
            names = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            lines.append(f"{spec.label}: {', '.join(names)} changed.")
            continue
        unit = f" {spec.unit}" if spec.unit else ""
        was, will = (f"{spec.text(value)}{unit}" if value is not None else "not set" for value in (old, new))
        lines.append(f"{spec.label}: {will}; it was {was}. {_EFFECTS.get(name, '')}".rstrip())
    batch_then, batch_now = _batch(before, then_on), _batch(now, now_on)
    if batch_then is not None and batch_now is not None and batch_then.global_ != batch_now.global_:
        lines.append(
            f"Samples per step: {batch_now} (micro-batch × devices in step × accumulation); it was {batch_then}. "
            "To choose it: Global batch, or --global-batch-size."
        )
    return tuple(lines)


def _batch(config: RunConfig, on: tuple[str, int]) -> Batch | None:
    mode, ranks = on
    try:
        return resolve_batch(config, Mode.read(mode).group_size(ranks), DEFAULT_MICRO_BATCH)
    except ConfigError:
        return None


def with_a_batch_that_fits(changes: Mapping[str, Any], config: RunConfig, ranks: int, mode: Mode) -> RunConfig:
    """`config` with batch numbers that go together on so many ranks.

    Numbers that fitted the ranks before may contradict each other now. If none was given anew the global batch stays,
    since the learning rate was chosen for it, and accumulation makes up for the number of ranks, or the micro-batch.

    Raises:
        ConfigError: They cannot go together; says which numbers near them can.
    """
    attempts = [config]
    if not any(name in changes for name in _BATCH):
        attempts += [config.replace(grad_accum_steps=None), config.replace(grad_accum_steps=None, batch_size=None)]
    refused: ConfigError | None = None
    for attempt in attempts:
        try:
            resolve_batch(attempt, mode.group_size(ranks), DEFAULT_MICRO_BATCH)
        except ConfigError as error:
            refused = error
        else:
            return attempt
    assert refused is not None
    raise refused


def check_optimizer(generation: Generation, config: RunConfig, mode: Mode) -> None:
    """Refuses an optimizer of another kind than the one whose state the generation holds, where both are known.

    The kind that is wanted is known beforehand where a DeepSpeed configuration names one, or the recipe has a field
    `optimizer`; a recipe that chooses by itself is refused by its ranks, when they take up the state.

    Raises:
        StateFileError: They differ; names both.
    """
    wanted = _wanted_optimizer(config, mode)
    held = next(
        (
            str(values["kind"])
            for file in generation.files
            if file.name.startswith("optimizer") and "kind" in (values := read_values(generation.folder / file.name))
        ),
        None,
    )
    if wanted is None or held is None or _plain(wanted) == _plain(held):
        return
    raise StateFileError(
        f"The run was trained with {held} so far, and {wanted} cannot use its state.",
        f"Resume with {held}, or start a new run with {wanted}.",
        title="The optimizer is different",
    )


def _wanted_optimizer(config: RunConfig, mode: Mode) -> str | None:
    option = config.options.get("optimizer")
    if mode == Mode.ZERO and config.deepspeed_config is not None:
        try:
            named = parse_json(config.deepspeed_config)["optimizer"]["type"]
        except (ValueError, KeyError, TypeError):
            named = None  # what is wrong with it, if anything, the engine's own check says
        if isinstance(named, str):
            return named
    return option if isinstance(option, str) else None


def _plain(name: str) -> str:
    """A kind's name without what does not change its state: ``torch_adamw`` and ``FusedAdamW`` keep AdamW's."""
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    for prefix in ("torch", "fused", "deepspeed", "cpu"):
        plain = plain.removeprefix(prefix)
    return plain
