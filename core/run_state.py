"""`RunState`: what `state.json` says about one run, and what a reader may conclude from it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from core.errors import StateFileError
from core.files import kind_of, require_format
from core.processes import ProcessId, is_alive

FORMAT: Final = "rankdeck-state"
VERSION: Final = 1
LIVE_STATES: Final = ("starting", "training", "stopping")
ENDED_STATES: Final = ("stopped", "finished", "failed")
INTERRUPTED: Final = "interrupted"
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
        step, total_steps: Optimizer steps done and to do.
        phase: What is happening just now, in words, while it starts or ends.
        generation: The newest committed one.
        error: Title, cause and next step of a failure (`RankdeckError.as_dict`).
        exit_code: What the host ended with.
        fallback: Why the run was continued on one device, or with another engine, if it was.
    """

    run_id: str
    name: str = ""
    state: str = "starting"
    attempt: int = 1
    host: ProcessId | None = None
    created: float = 0.0
    updated: float = 0.0
    mode: str = "auto"
    devices: tuple[str, ...] = ()
    recipe: str = ""
    step: int = 0
    total_steps: int | None = None
    epoch: int = 0
    loss: float | None = None
    val_loss: float | None = None
    tokens_per_s: float | None = None
    phase: str = ""
    generation: int | None = None
    world_size: int = 1
    error: dict[str, str] | None = None
    exit_code: int | None = None
    fallback: str | None = None

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
        kept = "No generation was committed yet; it starts from the beginning."
        if self.generation is not None:
            kept = f"It goes on from generation {self.generation}."
        words = {
            "title": "The run was interrupted",
            "cause": f"Its host ended at step {self.step} without a word (power cut, crash or kill).",
            "next_step": f"Resume it: rankdeck resume {self.run_id}. {kept}",
        }
        return self.replace(state=INTERRUPTED, error=words)

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
        known = {name: values[name] for name in _ALLOWED if name in values}
        for name, value in known.items():
            known[name] = _typed(name, value, path)
        if not known.get("run_id"):
            raise StateFileError(f"{path} names no run.", "Use a copy of it from before.")
        return cls(**known)


_ALLOWED: Final = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(RunState).items()}
"""The types that each field may have; worked out once, because a list of a thousand runs asks for them."""


def _typed(name: str, value: Any, path: Path) -> Any:
    if name == "host":
        return _host(value, path)
    if name == "devices":
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise _wrong(name, value, path)
    if name == "error" and isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    allowed = _ALLOWED[name]
    if value is None and type(None) in allowed:
        return None
    if float in allowed and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    for kind in (int, str):
        if kind in allowed and isinstance(value, kind) and not isinstance(value, bool):
            return value
    raise _wrong(name, value, path)


def _host(value: Any, path: Path) -> ProcessId | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        pid, started = value.get("pid"), value.get("started")
        if isinstance(pid, int) and isinstance(started, int | float):
            return ProcessId(pid, float(started))
    raise _wrong("host", value, path)


def _wrong(name: str, value: Any, path: Path) -> StateFileError:
    return StateFileError(
        f"{path}: {name} holds {kind_of(value)}, which does not belong there.", "Use a copy of it from before."
    )
