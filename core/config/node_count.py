"""`NodeCount`: with how many machines a run trains, as the setting `nodes` says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from core.errors import ConfigError

FIELD: Final = "nodes"
MOST: Final = 65_536
_FORM: Final = re.compile(r"\s*(\d{1,5})(?:\s*:\s*(\d{1,5}))?\s*")


@dataclass(frozen=True, slots=True)
class NodeCount:
    """With how many machines a run starts, and with how many it continues when some are lost.

    Attributes:
        can_lose: It starts with all of them, and continues with what is left of them, whatever that is. Otherwise it
            never trains with fewer than `least`.

    Raises:
        ConfigError: It is not a number of machines.
    """

    least: int
    most: int
    can_lose: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST or (self.can_lose and self.least < self.most):
            raise _not_a_count(self.text)

    @classmethod
    def read(cls, text: str) -> NodeCount:
        """``2``, or ``1:2`` or ``2:2``, which never trains with fewer than the first number; raises `ConfigError`."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise _not_a_count(text)
        return cls(int(found[1]), int(found[2] or found[1]), can_lose=found[2] is None)

    @property
    def text(self) -> str:
        return str(self.most) if self.can_lose else f"{self.least}:{self.most}"

    @property
    def fewest(self) -> int:
        """With how many machines the run continues when others are lost."""
        return 1 if self.can_lose else self.least

    @property
    def is_several(self) -> bool:
        return self.most > 1


def _not_a_count(text: str) -> ConfigError:
    return ConfigError(
        FIELD,
        f"Machines (nodes): {text[:40]!r} is not a number of machines.",
        "Give how many, or the least and the most.",
        option="--nodes 2, or --nodes 1:2",
    )
