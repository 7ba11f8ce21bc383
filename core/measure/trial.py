"""Trials: the answers of ranks after real steps, their one outcome, and the speed that follows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from core.config.sync import resolve_synchronisation
from core.formatting import UNKNOWN
from core.launch.resolved import ResolvedRun
from core.records import Limits, RecordError, Text, read_record

# Steps with at most two micro-batches made, the others counted; with all of them; sums of tensors over the ranks.
What = Literal["steps", "whole_steps", "sums"]
Outcome = Literal["measured", "too_large", "out_of_memory", "killed", "timed_out", "failed"]
OUTCOMES: Final[dict[Outcome, str]] = {
    "measured": "measured",
    "too_large": "not tried",
    "out_of_memory": "out of memory",
    "killed": "process killed",
    "timed_out": "timed out",
    "failed": "failed",
}
_TRANSPORTS: Final = {"shared": "shared memory", "nccl": "NCCL"}
Seconds = Annotated[float, Limits(0, 1e9)]
Bytes = Annotated[int, Limits(0)]


@dataclass(frozen=True, slots=True)
class SumTimes:
    """Seconds of each sum of a tensor over the ranks, as one rank saw them.

    Attributes:
        transport: "gloo", "nccl" or "shared".
        is_model: The tensor is as large as the model's gradients.
    """

    transport: Text
    size_bytes: Bytes
    is_model: bool = False
    times_s: list[Seconds] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """One rank's answer to a trial (`workers.measure.trial`).

    Attributes:
        exchange: How gradients travelled.
        round_s: Seconds of a round that synchronises independent ranks.
        own_steps_s, found_steps_s: Seconds of each step in turn, in a comparison of two batches.
        sums: Where these were asked for.
        cause: Why there are no figures.
        secondary: Another rank is to blame.
    """

    outcome: Literal["measured", "out_of_memory", "failed"] = "failed"
    step_s: Seconds = 0.0
    exchange: Text = ""
    round_s: Seconds | None = None
    own_steps_s: list[Seconds] = field(default_factory=list)
    found_steps_s: list[Seconds] = field(default_factory=list)
    sums: list[SumTimes] = field(default_factory=list)
    cause: Text = ""
    secondary: bool = False


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The outcome of all ranks of a trial.

    Attributes:
        steps_s: Seconds of a step on each rank; empty unless it was measured.
        pairs: Of a comparison of two batches, for each pair of steps the seconds on each rank: of the run's own batch,
            and of the one that was found.
        cause: Why it was not measured, as a sentence.
        answers: Each rank's, where it was measured.
    """

    outcome: Outcome
    steps_s: tuple[float, ...] = ()
    exchange: str = ""
    round_s: float | None = None
    cause: str = ""
    pairs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = ()
    answers: tuple[RankAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Death:
    """How a rank's process ended: as text, and whether it was killed, or crashed in native code."""

    text: str
    by_force: bool


def read_answers(values: Sequence[Mapping[str, Any] | None]) -> list[RankAnswer | None]:
    """Read ranks' answers; None for one that is missing or malformed."""
    return [_read_answer(one) for one in values]


def _read_answer(values: Mapping[str, Any] | None) -> RankAnswer | None:
    try:
        return None if values is None else read_record(RankAnswer, values)
    except RecordError:
        return None


def judge(answers: Sequence[RankAnswer | None], deaths: Mapping[int, Death]) -> TrialResult:
    """Find the one outcome of all ranks: the one that failed first is named, not those that waited for it.

    Args:
        answers: Each rank's; None: it gave none in time.
        deaths: Of the ranks whose process is gone.
    """
    given = [(rank, answer) for rank, answer in enumerate(answers) if answer is not None]
    for rank, answer in given:
        if answer.outcome == "out_of_memory":
            return TrialResult("out_of_memory", cause=f"Rank {rank}: {answer.cause}")
    for rank, death in sorted(deaths.items(), key=lambda one: not one[1].by_force):
        cause = f"The process of rank {rank} {death.text.rstrip('.')}."
        return TrialResult("killed" if death.by_force else "failed", cause=cause)
    for rank, answer in sorted(given, key=lambda one: one[1].secondary):
        if answer.outcome == "failed":
            return TrialResult("failed", cause=f"Rank {rank}: {answer.cause}")
    missing = [rank for rank, answer in enumerate(answers) if answer is None]
    if missing:
        return TrialResult("timed_out", cause=f"Rank {missing[0]} did not finish in time.")
    found = [answer for _, answer in given]
    rounds = [answer.round_s for answer in found if answer.round_s is not None]
    own, best = ([getattr(answer, name) for answer in found] for name in ("own_steps_s", "found_steps_s"))
    return TrialResult(
        "measured",
        tuple(answer.step_s for answer in found),
        found[0].exchange,
        max(rounds) if rounds else None,
        pairs=tuple(zip(zip(*own, strict=False), zip(*best, strict=False), strict=False)),  # independent ranks differ
        answers=tuple(found),
    )


def transport_title(name: str) -> str:
    return _TRANSPORTS.get(name, name or UNKNOWN)


def samples_per_s(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None = None) -> float:
    """Samples a second of all ranks together, from the seconds of a step on each and of a round of independent ones."""
    times = _with_rounds(run, steps_s, round_s)
    if run.mode.is_apart and round_s is None:
        return sum(run.batch.global_ / time_s for time_s in times)
    return run.replica_groups * run.batch.global_ / max(times)


def step_seconds(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None = None) -> float:
    """Seconds of a step: the slowest rank's where ranks wait for each other, else the mean."""
    times = _with_rounds(run, steps_s, round_s)
    return sum(times) / len(times) if run.mode.is_apart and round_s is None else max(times)


def _with_rounds(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None) -> list[float]:
    rule = resolve_synchronisation(run.config) if run.mode.is_apart and round_s is not None else None
    each_s = 0.0 if rule is None or round_s is None else round_s / rule.every
    return [step_s + each_s for step_s in steps_s]
