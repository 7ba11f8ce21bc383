"""Outcome of an attempt: a value, its message, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from core.checkpoints.store import Checkpoint
from core.errors import sentences
from core.host.failures import RankFailure

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_STOPPED_AT_ONCE: Final = 130


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an attempt.

    Attributes:
        kind: "not_started" is a failure before the first step; the others are as the run's states.
        error: Title, cause and next step, for a failure or a stop without a commit.
        model: The files to export as `model.safetensors` (`core.checkpoints.full_weights`); empty for none.
    """

    kind: Literal["finished", "stopped", "failed", "not_started"]
    error: dict[str, str] | None = None
    root: RankFailure | None = None
    usage: bool = False
    model: tuple[Path, ...] = ()
    unkillable: tuple[int, ...] = ()

    @property
    def failure_kind(self) -> str:
        """The cause that new processes would meet again: ``non_finite``, ``out_of_memory``; empty for others."""
        return "" if self.root is None else self.root.kind

    @property
    def reported(self) -> str:
        """The report of the rank that failed first, after its device; empty without a report."""
        return "" if self.root is None or self.root.report is None else f"{self.root.device}: {self.root.report.cause}"


def exit_code(outcome: Outcome, hurried: bool) -> int:
    if outcome.kind in ("finished", "stopped"):
        return 0 if outcome.error is None else EXIT_STOPPED_AT_ONCE if hurried else EXIT_FAILED
    return EXIT_USAGE if outcome.usage else EXIT_FAILED


def stopped_short(step: int, kept: Checkpoint | None, hurried: bool, trouble: str = "") -> dict[str, str]:
    """The message for a stop that lost the steps after the newest checkpoint; `trouble`: why a commit failed."""
    why = "immediately, as requested" if hurried else "at the stop limit, before its last checkpoint was saved"
    done = f"Checkpoint {kept.number} holds step {kept.step}" if kept else "No checkpoint was saved"
    return {
        "title": "Stopped without a last checkpoint",
        "cause": f"The run was ended {why}. {done}; it stood at step {step}. {trouble}".rstrip(),
        "next_step": "Resume the run. Steps after that checkpoint are trained again.",
    }


def diverged(newest: Checkpoint, good: Checkpoint | None, devices: Sequence[str]) -> dict[str, str]:
    """The message for a run that ended in order, but with weights that are not finite.

    `good` is the newest checkpoint from which a run can be resumed.
    """
    names = ", ".join(devices[rank] for rank in newest.diverged)
    whose = f" on {names}" if len(newest.diverged) < len(newest.positions) else ""
    resume = "start the run again"
    if good is not None:
        resume = f"resume: the run continues from checkpoint {good.number}, step {good.step}"
    return {
        "title": "Training has diverged",
        "cause": f"The weights{whose} are not finite at step {newest.step} (checkpoint {newest.number}).",
        "next_step": f"Lower the learning rate (--lr) and {resume}.",
        "window_step": f"Lower the learning rate and {resume}.",
    }


def metrics_lost(lines: int) -> dict[str, str]:
    return {
        "title": "Some metrics are lost",
        "cause": f"The disk was full: at least {lines} lines of metrics could not be written.",
        "next_step": "Free some space before the next run.",
    }


def own_failure(error: Exception) -> dict[str, str]:
    return {
        "title": "The run host failed",
        "cause": f"Rankdeck itself failed ({type(error).__name__}: {error}).",
        "next_step": "Please report it with logs/host.log. You can resume the run.",
    }


def with_unkillable(error: Mapping[str, str] | None, pids: tuple[int, ...]) -> dict[str, str]:
    which = f"Process {', '.join(map(str, pids))} did not exit, even when killed (the driver may hang)."
    if error is None:
        return {"title": "A process could not be ended", "cause": which, "next_step": "Restart the machine to end it."}
    return {**error, "cause": sentences(error["cause"], which)}
