"""Runs that can be tuned, and why others cannot. Pure."""

from __future__ import annotations

from core.errors import ConfigError
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun

TITLE = "This run cannot be tuned"


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
            title=TITLE,
        )
    if run.choice.engine == DEEPSPEED:
        raise ConfigError(
            "zero_engine",
            "DeepSpeed counts micro-batches itself, so no others are tried with it.",
            "Choose PyTorch as ZeRO engine to tune; both engines train the same model.",
            title=TITLE,
            option="--zero-engine torch",
        )
    if run.compiles:
        raise ConfigError(
            "torch_compile",
            "With torch.compile on, every trial would compile the model again.",
            "Turn it off to tune; whether it makes steps faster is tried at the end.",
            title=TITLE,
            option="--no-torch-compile",
        )
