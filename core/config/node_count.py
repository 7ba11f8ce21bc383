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
    """The least and the most machines.

    Raises:
        ConfigError: It is not a number of machines.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST:
            raise _not_a_count(self.text)

    @classmethod
    def read(cls, text: str) -> NodeCount:
        """``2``, or ``1:2``.

        Raises:
            ConfigError: It is neither.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise _not_a_count(text)
        return cls(int(found[1]), int(found[2] or found[1]))

    @property
    def text(self) -> str:
        """As `read` takes it."""
        return str(self.most) if self.least == self.most else f"{self.least}:{self.most}"

    @property
    def is_several(self) -> bool:
        """More than the machine on which the run is started."""
        return self.most > 1


def _not_a_count(text: str) -> ConfigError:
    return ConfigError(
        FIELD,
        f"Machines (nodes): {text[:40]!r} is not a number of machines.",
        "Give how many, or the least and the most.",
        option="--nodes 2, or --nodes 1:2",
    )
