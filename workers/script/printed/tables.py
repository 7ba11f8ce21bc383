"""Tables with a name and a number in each row, as reinforcement learning programs print them, made one line each.

Stable-Baselines3 and its relatives::

    ---------------------------------
    | rollout/           |          |
    |    ep_rew_mean     | 22.3     |
    | time/              |          |
    |    total_timesteps | 2048     |
    ---------------------------------

and Spinning Up (``|      AverageEpRet |            22.7 |``), and Rich draws Lightning's test results. A row alone says
nothing about its step, so a table is held until a line comes that is not a row of it. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Final

_ROW: Final = re.compile(r"^[|│]\s*(?P<name>[A-Za-z][^|│]*?)\s*[|│]\s*(?P<value>[^|│]*?)\s*[|│]$")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)")
_STEPS: Final = ("total_timesteps", "total_env_steps", "totalenvinteracts", "timesteps", "num_timesteps")
_PLAIN_SECTIONS: Final = ("rollout/", "time/")
"""Their rows' names say enough."""
_OTHER_COUNTERS: Final = ("time", "time_elapsed", "iterations", "n_updates", "episodes")
MOST_ROWS: Final = 500


class Tables:
    """Passes lines on, a table as one line with a dict."""

    def __init__(self) -> None:
        self._section = ""
        self._rows: dict[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Rows wait for the end of their table."""
        return bool(self._rows)

    def join(self, pieces: list[str]) -> list[str]:
        """The lines with the tables among them put together; a table that is not finished is kept."""
        lines: list[str] = []
        for text in pieces:
            row = _ROW.match(text) if text.startswith(("|", "│")) else None
            if row is not None and len(self._rows) < MOST_ROWS:
                self._add(row["name"], row["value"])
            else:
                lines += [*self.finish(), text]
        return lines

    def finish(self) -> list[str]:
        """What is held, as it is."""
        rows, self._rows, self._section = self._rows, {}, ""
        return [json.dumps(rows)] if rows else []

    def _add(self, name: str, value: str) -> None:
        key = name.lower()
        if not value:
            self._section = "" if key in _PLAIN_SECTIONS else name if name.endswith("/") else self._section
        elif _NUMBER.fullmatch(value) and key not in _OTHER_COUNTERS:
            self._rows["global_step" if key.rpartition("/")[2] in _STEPS else f"{self._section}{name}"] = float(value)
