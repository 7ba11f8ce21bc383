"""`RunState`: what `state.json` says about one run, and what a reader may conclude from it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from core.config.mode import Mode
from core.errors import StateFileError
from core.files.atomic import require_format, type_text
from core.processes.identity import MAX_UNIX_S, ProcessId, is_alive

FORMAT: Final = "rankdeck-state"
VERSION: Final = 2
"""Version 1 calls the checkpoint a generation."""
LIVE_STATES: Final = ("starting", "training", "stopping")
ENDED_STATES: Final = ("stopped", "finished", "failed")
INTERRUPTED: Final = "interrupted"
MAX_STATE_BYTES: Final = 1 << 20
MAX_DEVICES: Final = 65_536
HOST_START_LIMIT_S: Final = 60.0
"""A run that says "starting" and names no host after this long has lost it before it could write its name."""


@dataclass(frozen=True, slots=True)
class RunState:
    """One run, as its host last wrote it.

    Attributes:
        state: "starting", "training", "stopping", "stopped", "finished" or "failed"; a reader also meets
            "interrupted", which is never written (see `seen`).
        attempt: 1 for the first start, one more for each resume.
        host: The run host's process.
        created, updated: Unix seconds.
        mode: "single", "ddp", "independent", …, once it is decided.
        devices: What it runs on, by UUID ("GPU-…") or "cpu:0".
        step, total_steps: Optimizer steps done and to do (estimated, where a goal ends the run).
        goal: How far the run is towards such a goal ("450 of 600 episodes"); empty: it has none.
        phase: What is happening just now, as text, while it starts or ends.
        checkpoint: The number of the newest one.
        error: Title, cause and next step of a failure (`RankdeckError.as_dict`).
        exit_code: What the host ended with.
        fallback: Why the run was continued with another engine, independently, or on one device, if it was.
        trouble: Title, cause and next step of what keeps a live run from being saved just now; None when nothing does.
    """

    run_id: str
    name: str = ""
    state: str = "starting"
    attempt: int = 1
    host: ProcessId | None = None
    created: float = 0.0
    updated: float = 0.0
    mode: str = Mode.AUTO
    devices: tuple[str, ...] = ()
    recipe: str = ""
    step: int = 0
    total_steps: int | None = None
    goal: str = ""
    epoch: int = 0
    loss: float | None = None
    val_loss: float | None = None
    tokens_per_s: float | None = None
    phase: str = ""
    checkpoint: int | None = None
    world_size: int = 1
    error: dict[str, str] | None = None
    exit_code: int | None = None
    fallback: str | None = None
    trouble: dict[str, str] | None = None

    def replace(self, **changes: Any) -> RunState:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def is_live(self) -> bool:
        """Whether it says that a host is at work; `seen` checks that the host is there."""
        return self.state in LIVE_STATES

    def seen(self, now: float | None = None) -> RunState:
        """This state as a reader must take it: "interrupted" when it says it is live and its host is dead.

        Args:
            now: Unix seconds; None asks the clock.
        """
        if not self.is_live or (self.host is not None and is_alive(self.host)):
            return self
        age_s = (time.time() if now is None else now) - self.updated
        if self.host is None and self.state == "starting" and abs(age_s) < HOST_START_LIMIT_S:
            return self
        kept = "It has no checkpoint yet, so it starts from the beginning."
        if self.checkpoint is not None:
            kept = f"It continues from checkpoint {self.checkpoint}."
        error = {
            "title": "The run was interrupted",
            "cause": f"Its host ended unexpectedly at step {self.step} (power cut, crash or kill).",
            "next_step": f"Resume it: rankdeck resume {self.run_id}. {kept}",
        }
        return self.replace(state=INTERRUPTED, error=error)

    def as_dict(self) -> dict[str, Any]:
        """As `state.json` and `RunStatus` carry it; numbers that are not finite become null."""
        values: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                value = None
            values[field.name] = value
        values["devices"] = list(self.devices)
        values["host"] = None if self.host is None else {"pid": self.host.pid, "started": self.host.started}
        return values

    @classmethod
    def from_dict(cls, document: Any, path: Path = Path("state.json")) -> RunState:
        """The state that `as_dict` gave. Fields it does not know are left out.

        Args:
            document: The parsed JSON.
            path: Where it came from, for the words of an error.

        Raises:
            StateFileError: Not a state file, a field of the wrong type, or from a newer version.
        """
        values = require_format(document, path, FORMAT, VERSION)
        if "generation" in values:  # 0.1
            values["checkpoint"] = values.pop("generation")  # 0.1
        known = {name: values[name] for name in _ALLOWED if name in values}
        for name, value in known.items():
            known[name] = _typed(name, value, path)
        if not known.get("run_id"):
            raise StateFileError(f"{path} doesn't contain a run id.", "Use a copy of it from before.")
        return cls(**known)


_ALLOWED: Final = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(RunState).items()}
"""The types that each field may have; worked out once, because a list of a thousand runs asks for them."""
_STATES: Final = (*LIVE_STATES, *ENDED_STATES, INTERRUPTED)
_LARGEST: Final = 2**63 - 1
_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "created": (0, MAX_UNIX_S),
    "updated": (0, MAX_UNIX_S),
    "world_size": (0, MAX_DEVICES),
    "exit_code": (-(2**31), 2**32 - 1),
    "loss": (-math.inf, math.inf),
    "val_loss": (-math.inf, math.inf),
    "tokens_per_s": (0, math.inf),
}
"""Least and largest value of a number; of every other one 0 and 2**63 - 1."""
_MAX_LETTERS: Final[Mapping[str, int]] = {"run_id": 255, "name": 255, "mode": 255, "recipe": 4096, "state": 255}
"""Of every other text as many as the file may hold."""


def _typed(name: str, value: Any, path: Path) -> Any:
    """A field's value, if it has the type and the size that the field can have."""
    allowed = _ALLOWED[name]
    if value is None and type(None) in allowed:
        return None
    if name == "host":
        host = ProcessId.from_json(value)
        if host is None:
            raise _wrong(path, "host does not name a process by its pid and its start time")
        return host
    if name == "devices":
        if isinstance(value, list) and len(value) <= MAX_DEVICES and all(_is_text(item) for item in value):
            return tuple(value)
    elif name in ("error", "trouble"):
        if isinstance(value, Mapping) and all(_is_text(item) for pair in value.items() for item in pair):
            return dict(value)
    elif str in allowed:
        if _is_text(value):
            return _checked_text(name, value, path)
    elif isinstance(value, int if float not in allowed else int | float) and not isinstance(value, bool):
        return _checked_number(name, value, path)
    raise _wrong(path, f"{name} holds {type_text(value)}, which does not belong there")


def _is_text(value: object) -> bool:
    """Whether it is text that can be written again; JSON's \\ud800 alone is half a character."""
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _checked_text(name: str, value: str, path: Path) -> str:
    if len(value) > _MAX_LETTERS.get(name, len(value)):
        raise _wrong(path, f"{name} has {len(value):,} characters, and at most {_MAX_LETTERS[name]:,} are possible")
    if name == "state" and value not in _STATES:
        raise _wrong(path, f"state is {value!r:.60}, which is not one of {', '.join(_STATES)}")
    return value


def _checked_number(name: str, value: float, path: Path) -> float:
    least, largest = _LIMITS.get(name, (0, _LARGEST))
    as_float = float(value)  # no overflow: `core.parsing` bounds the digits
    if not (math.isfinite(as_float) and least <= value <= largest):
        raise _wrong(path, f"{name} is {as_float:.3g}, which is not a possible value")
    return as_float if float in _ALLOWED[name] else value


def _wrong(path: Path, what: str) -> StateFileError:
    return StateFileError(f"{path}: {what}.", "Use a copy of it from before.")
