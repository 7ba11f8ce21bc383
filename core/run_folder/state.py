"""`RunState`: what `state.json` says about one run, and what a reader may conclude from it."""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from core.config.mode import Mode
from core.errors import StateFileError
from core.files.atomic import require_format
from core.processes.identity import MAX_UNIX_S, ProcessId, is_alive
from core.records import Finite, Limits, RecordError, Text, Whole, read_record

FORMAT: Final = "rankdeck-state"
# Version 1 calls the checkpoint a generation.
VERSION: Final = 2
LIVE_STATES: Final = ("starting", "training", "stopping")
ENDED_STATES: Final = ("stopped", "finished", "failed")
INTERRUPTED: Final = "interrupted"
STATES: Final = (*LIVE_STATES, *ENDED_STATES, INTERRUPTED)
MAX_STATE_BYTES: Final = 1 << 20
MAX_DEVICES: Final = 65_536
# A run that says "starting" and names no host after this long has lost it before it could write its name.
HOST_START_LIMIT_S: Final = 60.0
# A live run's state that is older than this, or newer, has the time of another machine's clock.
CLOCKS_DIFFER_S: Final = 3600.0

Name = Annotated[str, Limits(0, 255)]
UnixSeconds = Annotated[float, Limits(0, MAX_UNIX_S)]


@dataclass(frozen=True, slots=True)
class RunState:
    """One run, as its host last wrote it.

    Attributes:
        state: "starting", "training", "stopping", "stopped", "finished" or "failed"; a reader also meets
            "interrupted", which is never written (see `seen`).
        devices: UUIDs ("GPU-…") or "cpu:0".
        total_steps: Optimizer steps to do (estimated, where a goal ends the run).
        goal: Progress towards such a goal ("450 of 600 episodes"); empty: it has none.
        phase: Its activity while it starts or ends, as text.
        error: Title, cause and next step of a failure (`RankdeckError.as_dict`).
        stopped_by: Why a stop rule ended it, as a sentence; empty where none did.
        trained_s: Seconds of training in all attempts.
        fallback: Why the run was continued with another engine, independently, or on one device, if it was.
        nodes: The names of its machines, the one with the host first; empty where it is on one machine alone.
        trouble: Title, cause and next step of a problem that keeps a live run from being saved just now.
    """

    run_id: Annotated[str, Limits(1, 255)]
    name: Name = ""
    state: Name = "starting"
    attempt: Whole = 1
    host: ProcessId | None = None
    created: UnixSeconds = 0.0
    updated: UnixSeconds = 0.0
    mode: Name = Mode.AUTO
    devices: Annotated[tuple[Text, ...], Limits(0, MAX_DEVICES)] = ()
    recipe: Annotated[str, Limits(0, 4096)] = ""
    step: Whole = 0
    total_steps: Whole | None = None
    goal: Text = ""
    epoch: Whole = 0
    loss: Finite | None = None
    val_loss: Finite | None = None
    tokens_per_s: Annotated[float, Limits(0)] | None = None
    phase: Text = ""
    checkpoint: Whole | None = None
    world_size: Annotated[int, Limits(0, MAX_DEVICES)] = 1
    error: dict[Text, Text] | None = None
    exit_code: Annotated[int, Limits(-(2**31), 2**32 - 1)] | None = None
    stopped_by: Text = ""
    trained_s: Annotated[float, Limits(0)] = 0.0
    fallback: Text | None = None
    nodes: Annotated[tuple[Text, ...], Limits(0, MAX_DEVICES)] = ()
    trouble: dict[Text, Text] | None = None

    def replace(self, **changes: Any) -> RunState:
        return dataclasses.replace(self, **changes)

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_STATES

    def now(self, here: float) -> float:
        """The Unix time by the training machine's clock, from the time here: a live run's state is seldom old."""
        return here if abs(here - self.updated) < CLOCKS_DIFFER_S else self.updated

    def seen(self, now: float | None = None) -> RunState:
        """The state for a reader: "interrupted" when it claims to be live and its host is dead."""
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
            "window_step": f"Resume it. {kept}",
        }
        return self.replace(state=INTERRUPTED, error=error)

    def as_dict(self) -> dict[str, Any]:
        """The document for `state.json` and `RunStatus`; numbers that are not finite become null."""
        values: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                value = None
            values[field.name] = value
        values["devices"] = list(self.devices)
        values["nodes"] = list(self.nodes)
        values["host"] = None if self.host is None else {"pid": self.host.pid, "started": self.host.started}
        return values

    @classmethod
    def from_dict(cls, document: Any, path: Path = Path("state.json")) -> RunState:
        """Read the state that `as_dict` gave; unknown fields are left out.

        Raises:
            StateFileError: Not a state file, a field of the wrong type, or from a newer version.
        """
        values = require_format(document, path, FORMAT, VERSION)
        if "generation" in values:  # 0.1
            values["checkpoint"] = values.pop("generation")  # 0.1
        try:
            state = read_record(cls, values)
            if state.state not in STATES:
                raise RecordError(f"is {state.state!r:.60}, which is not one of {', '.join(STATES)}", "state")
        except RecordError as error:
            raise StateFileError(f"{path}: {error}.", "Use a copy of it from before.") from None
        return state
