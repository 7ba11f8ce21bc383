"""Choice: the settings that tuning may change, as one value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from core.config.fields import Needs
from core.errors import ConfigError
from core.formatting import UNKNOWN
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun, resolve_on
from core.measure.estimate.figures import CHECKPOINTING

_TITLE: Final = "This run cannot be tuned"


@dataclass(frozen=True, slots=True)
class Choice:
    """What one trial trains with.

    Attributes:
        micro_batch, accumulation: Of one rank; their product is the same in all choices, so the global batch stays.
        exchange: `RunConfig.gradient_exchange`; empty where DDP averages no gradients.
        checkpointing: Gradient checkpointing; None where the recipe has no such option.
        compiles: torch.compile; None where it has no effect.
    """

    micro_batch: int
    accumulation: int
    exchange: str = ""
    checkpointing: bool | None = None
    compiles: bool | None = None

    @classmethod
    def of(cls, run: ResolvedRun) -> Choice:
        option = run.config.options.get(CHECKPOINTING)
        return cls(
            run.batch.micro,
            run.batch.accumulation,
            run.config.gradient_exchange if Needs.DDP in run.has else "",
            option if isinstance(option, bool) else None,
            run.compiles if Needs.COMPILER in run.has else None,
        )

    @property
    def micro_batches(self) -> list[int]:
        """Sizes that give the same global batch, ascending: the divisors of a rank's share of it."""
        share = self.micro_batch * self.accumulation
        return [size for size in range(1, share + 1) if share % size == 0]

    def in_micro_batches(self, size: int) -> Choice:
        """The same in micro-batches of another size, which divides a rank's share of the global batch."""
        share = self.micro_batch * self.accumulation
        return replace(self, micro_batch=size, accumulation=share // size)

    def changes(self, run: ResolvedRun) -> dict[str, Any]:
        """What differs from the run's settings, by the settings' names; a recipe's own under `options`."""
        own, changes = Choice.of(run), dict[str, Any]()
        if (self.micro_batch, self.accumulation) != (own.micro_batch, own.accumulation):
            changes |= {"batch_size": self.micro_batch, "grad_accum_steps": self.accumulation}
        if self.exchange != own.exchange:
            changes["gradient_exchange"] = self.exchange
        if self.compiles != own.compiles:
            changes["torch_compile"] = self.compiles
        if self.checkpointing != own.checkpointing:
            changes["options"] = {CHECKPOINTING: self.checkpointing}
        return changes

    def applied(self, run: ResolvedRun) -> ResolvedRun:
        """The run with these settings.

        Raises:
            ConfigError, PreflightError: They are not possible together.
        """
        changes: Mapping[str, Any] = self.changes(run)
        if not changes:
            return run
        options = {**run.config.options, **changes.get("options", {})}
        config = run.config.replace(**{**changes, "options": options})
        return resolve_on(config, run.recipe, run.devices, run.platform)


def changes_text(changes: Mapping[str, Any]) -> str:
    """Changes of settings for a person: "micro-batch 16, accumulation 1"; empty where nothing changes."""
    names = {
        "batch_size": "micro-batch",
        "grad_accum_steps": "accumulation",
        "gradient_exchange": "all-reduce",
        "torch_compile": "torch.compile",
    }
    parts = [f"{names.get(name, name)} {on_off(value)}" for name, value in changes.items() if name != "options"]
    options: Mapping[str, Any] = changes.get("options", {})
    parts += [f"gradient checkpointing {on_off(value)}" for value in options.values()]
    return ", ".join(parts)


def on_off(value: object) -> str:
    """A value of a setting for a person: true is "on", false "off", None the sign for nothing."""
    return UNKNOWN if value is None else ("on" if value else "off") if isinstance(value, bool) else str(value)


def changes_flags(changes: Mapping[str, Any]) -> list[str]:
    """Changes of settings as the command line takes them."""
    flags = [part for name, value in changes.items() if name != "options" for part in _flag(name, value)]
    options: Mapping[str, Any] = changes.get("options", {})
    return [*flags, *(part for name, value in options.items() for part in ("--set", f"{name}={str(value).lower()}"))]


def _flag(name: str, value: object) -> tuple[str, ...]:
    flag = name.replace("_", "-")
    return (f"--{flag}" if value else f"--no-{flag}",) if isinstance(value, bool) else (f"--{flag}", str(value))


def check_tunable(run: ResolvedRun) -> None:
    """Refuses runs that cannot be tuned.

    Raises:
        ConfigError: A program of the person's own, DeepSpeed, or a model that is compiled already.
    """
    if run.recipe.self_contained:
        raise ConfigError(
            "recipe",
            "Your script chooses its own batches and steps, so Rankdeck cannot try others with it.",
            "Choose a recipe to tune.",
            title=_TITLE,
        )
    if run.choice.engine == DEEPSPEED:
        raise ConfigError(
            "zero_engine",
            "DeepSpeed counts micro-batches itself, so no others are tried with it.",
            "Choose PyTorch as ZeRO engine to tune; both engines train the same model.",
            title=_TITLE,
            option="--zero-engine torch",
        )
    if run.compiles:
        raise ConfigError(
            "torch_compile",
            "With torch.compile on, every trial would compile the model again.",
            "Turn it off to tune; whether it makes steps faster is tried at the end.",
            title=_TITLE,
            option="--no-torch-compile",
        )
