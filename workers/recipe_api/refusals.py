"""Refusals: how a recipe says before a run that it cannot train something. Needs neither torch nor NumPy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.config import RunConfig
from core.errors import ConfigError, DatasetError
from core.files.lfs_pointer import check_lfs_pointer
from core.machine.packages import MissingPackageError, check_packages

__all__ = [
    "Checked", "ConfigError", "DatasetError", "MissingPackageError", "Request", "check_heads", "check_lfs_pointer",
    "check_packages",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """What `check(request)` gets: a run that was asked for and has not started.

    Attributes:
        config: What was asked, complete with the recipe's defaults.
        resumes: The run exists: what was prepared for it is in its folder.
        global_batch: Samples in an optimizer step, where they are known.
        at_default: Names of the settings that still have the recipe's default, which `Checked.settings` may change.
    """

    config: RunConfig
    resumes: bool = False
    global_batch: int | None = None
    at_default: Collection[str] = ()

    @property
    def options(self) -> Mapping[str, Any]:
        """The recipe's own fields, as `recipe.toml` names them."""
        return self.config.options


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check(request)` may return, instead of a list of notes.

    Attributes:
        notes: What a person should know though it stops nothing.
        settings: Other values for settings in `Request.at_default`, so that they fit the rest.
    """

    notes: Sequence[str] = ()
    settings: Mapping[str, int | float | str | bool] = field(default_factory=dict)


def check_heads(width: int, heads: int, *, even: bool = False) -> None:
    """Refuses attention heads that cannot share the width.

    Args:
        width: The embedding size, the field ``n_embd``.
        heads: The number of heads.
        even: Each head's part of the width must be even too (rotary positions).

    Raises:
        ConfigError: Names the nearest width that fits, and the nearest number of heads if there is one.
    """
    unit = 2 * heads if even else heads
    if width % unit == 0:
        return
    fitting = [count for count in range(1, width + 1) if width % (2 * count if even else count) == 0]
    nearest = min(fitting, key=lambda count: (abs(count - heads), -count), default=0)
    instead = f", or {nearest} head{'' if nearest == 1 else 's'}" if nearest else ""
    what, sum_ = ("twice the heads", f"{width} ÷ (2 × {heads})") if even else ("heads", f"{width} ÷ {heads}")
    raise ConfigError(
        "n_embd",
        f"Width must be divisible by {what} ({sum_}).",
        f"Try {max(1, round(width / unit)) * unit}{instead}.",
    )
