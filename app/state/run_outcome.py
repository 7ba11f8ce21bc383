"""Run outcome: the message that explains a failure, an interruption or a fallback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.config.mode import Mode
from core.errors import sentences
from core.run_folder.state import RunState


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Title, cause and next step, for the bar over the plots.

    Attributes:
        kind: "error" or "warning".
        text: Cause and next step.
        log: Name of the log that says more ("rank1.log"); None where no single process is to blame.
        resumes: The next step is to resume it; otherwise it is to look into the log.
    """

    kind: str
    title: str
    text: str
    log: str | None = None
    resumes: bool = False


def run_outcome(state: RunState) -> RunOutcome | None:
    """Why a run failed or was interrupted, or that it fell back; None when there is nothing to tell."""
    error = state.error or {}
    text = _cause_and_step(error)
    if state.state == "failed":
        title = error.get("title", "The run failed")
        return RunOutcome("error", title, text, _log_in(error.get("log", title)))
    if state.state == "interrupted":
        return RunOutcome("warning", error.get("title", "The run was interrupted"), text, resumes=True)
    if state.trouble and state.is_live:
        text = _cause_and_step(state.trouble)
        return RunOutcome("error", state.trouble.get("title", "The run cannot be saved"), text)
    if state.fallback:
        again = "stop the run and resume it" if state.is_live else "resume the run"
        title, what = _fallen_back(state)
        text = state.fallback
        if state.state != "finished":
            text = sentences(text, f"To try {what} again, {again}.")
        return RunOutcome("warning", title, text, _log_in(state.fallback))
    return None


def _cause_and_step(error: Mapping[str, str]) -> str:
    return sentences(error.get("cause"), error.get("window_step") or error.get("next_step"))


def _fallen_back(state: RunState) -> tuple[str, str]:
    """The title of what it fell back to, and what was asked for."""
    if state.world_size == 1:
        return "Continuing on one device" if state.is_live else "Fell back to one device", "all devices"
    if state.mode == Mode.INDEPENDENT:
        live = "Each device trains its own model"
        return live if state.is_live else "Fell back to independent training", "the mode you chose"
    return "Continuing without DeepSpeed" if state.is_live else "Fell back to PyTorch's engine", "DeepSpeed"


def _log_in(text: str) -> str | None:
    """The log that a text names: logs/rank1.log, or "rank 1" in runs of early versions."""
    found = re.search(r"\brank ?(\d+)", text, re.IGNORECASE)
    return f"rank{found[1]}.log" if found else None
