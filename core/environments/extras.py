"""Extras of an environment: what each is for, which recipes need it, and which cannot be had on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core.environments.deepspeed_wheels import why_no_wheel
from core.formatting import listed
from core.machine.packages import choose_extras
from core.recipes.manifest import Recipe

DEEPSPEED: Final = "deepspeed"
OFFERED: Final = ("hf", "rl", "bpe", "data", DEEPSPEED)
_TITLES: Final = {
    "hf": "Hugging Face models, LoRA and datasets",
    "rl": "Reinforcement learning with PPO (Gymnasium)",
    "bpe": "BPE tokens for MiniGPT",
    "data": "Parquet files as data",
    DEEPSPEED: "DeepSpeed, as another engine for ZeRO",
}
DEEPSPEED_NOTE: Final = (
    "ZeRO's default is PyTorch's own engine: it needs nothing more and trains on every device. DeepSpeed adds "
    "configuration files of its own, and the optimizer alone in CPU memory."
)


@dataclass(frozen=True, slots=True)
class Extra:
    """Something that can be added to an environment.

    Attributes:
        name: As in `pyproject.toml`.
        title: Its check box.
        note: Who needs it, or what it adds; may be empty.
        unavailable: Why it cannot be had here, as a sentence; empty where it can.
    """

    name: str
    title: str
    note: str = ""
    unavailable: str = ""

    @property
    def is_needed(self) -> bool:
        """A recipe needs it, and it can be had."""
        return bool(self.note) and self.name != DEEPSPEED and not self.unavailable


def list_extras(
    recipes: Iterable[Recipe],
    held: Mapping[str, tuple[str, ...]],
    system: str = sys.platform,
    python: tuple[int, int] = sys.version_info[:2],
) -> tuple[Extra, ...]:
    """What can be added, in the order in which it is shown.

    Args:
        recipes: All; a broken one needs nothing.
        held: What each extra of Rankdeck holds.
        system: `sys.platform`.
        python: (3, 12) of Python 3.12.
    """
    users: dict[str, list[str]] = {}
    for recipe in recipes:
        needed = choose_extras(recipe.requires, held)[0] if not recipe.problem and recipe.requires else ()
        for name in needed:
            users.setdefault(name, []).append(recipe.title)
    return tuple(
        Extra(name, _TITLES[name], _note(name, users.get(name, [])), _why_not(name, system, python))
        for name in OFFERED
        if name in held
    )


def _note(name: str, users: list[str]) -> str:
    if name == DEEPSPEED:
        return DEEPSPEED_NOTE
    return f"Needed by {listed(users)}." if users else ""


def _why_not(name: str, system: str, python: tuple[int, int]) -> str:
    return why_no_wheel(system, python) if name == DEEPSPEED else ""
