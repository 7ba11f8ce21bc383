"""Answers of the ranks of a trial, and the one outcome that they come to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from core.records import Limits, Text
from core.trials.outcome import Outcome

Seconds = Annotated[float, Limits(0, 1e9)]
Bytes = Annotated[int, Limits(0)]


@dataclass(frozen=True, slots=True)
class SumTimes:
    """How long sums over the ranks took, as one rank saw them.

    Attributes:
        transport: How they travelled: "gloo", "nccl", "shared", with "bf16" where they were rounded on the way.
        size_bytes: Of the tensor.
        is_model: It is as large as the model's gradients.
        times_s: Of each sum.
    """

    transport: Text
    size_bytes: Bytes
    is_model: bool = False
    times_s: list[Seconds] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """One rank's answer, as `workers.trials.trial` gives it.

    Attributes:
        outcome: "measured", "out_of_memory" or "failed".
        step_s: Seconds of a step.
        exchange: How gradients travelled.
        round_s: Seconds of a round that synchronises independent ranks.
        own_steps_s, found_steps_s: Seconds of each step in turn, in a comparison of two batches.
        memory_bytes: What the process held after each step, or of a GPU its tensors, where that was asked for.
        peak_bytes: The most that it held, by the same count.
        sums: Times of sums over the ranks, where these were asked for.
        cause: Why there are no figures.
        secondary: Another rank is to blame.
    """

    outcome: Literal["measured", "out_of_memory", "failed"]
    step_s: Seconds = 0.0
    exchange: Text = ""
    round_s: Seconds | None = None
    own_steps_s: list[Seconds] = field(default_factory=list)
    found_steps_s: list[Seconds] = field(default_factory=list)
    memory_bytes: list[Bytes] = field(default_factory=list)
    peak_bytes: Bytes = 0
    sums: list[SumTimes] = field(default_factory=list)
    cause: Text = ""
    secondary: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a trial.

    Attributes:
        outcome: Of all ranks together.
        steps_s: Seconds of a step on each rank; empty unless it was measured.
        pairs: Of a comparison of two batches, for each pair of steps what both took on each rank: the run's own batch,
            and the one that was found.
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
    """How a rank's process ended.

    Attributes:
        text: As `core.processes.ask.Answer.failure` says it.
        by_force: It was killed, or crashed in native code.
    """

    text: str
    by_force: bool


def judge(answers: Sequence[RankAnswer | None], deaths: Mapping[int, Death]) -> Answered:
    """One outcome of all ranks: the one that failed first is named, not those that waited for it.

    Args:
        answers: Each rank's; None: it gave none in time.
        deaths: How ranks ended whose process is gone.
    """
    given = [(rank, answer) for rank, answer in enumerate(answers) if answer is not None]
    for rank, answer in given:
        if answer.outcome == "out_of_memory":
            return Answered("out_of_memory", cause=f"Rank {rank}: {answer.cause}")
    for rank, death in sorted(deaths.items(), key=lambda one: not one[1].by_force):
        cause = f"The process of rank {rank} {death.text.rstrip('.')}."
        return Answered("killed" if death.by_force else "failed", cause=cause)
    for rank, answer in sorted(given, key=lambda one: one[1].secondary):
        if answer.outcome == "failed":
            return Answered("failed", cause=f"Rank {rank}: {answer.cause}")
    missing = [rank for rank, answer in enumerate(answers) if answer is None]
    if missing:
        return Answered("timed_out", cause=f"Rank {missing[0]} did not finish in time.")
    found = [answer for _, answer in given]
    rounds = [answer.round_s for answer in found if answer.round_s is not None]
    own, best = ([getattr(answer, name) for answer in found] for name in ("own_steps_s", "found_steps_s"))
    return Answered(
        "measured",
        tuple(answer.step_s for answer in found),
        found[0].exchange,
        max(rounds) if rounds else None,
        pairs=tuple(zip(zip(*own, strict=False), zip(*best, strict=False), strict=False)),  # independent ranks differ
        answers=tuple(found),
    )
