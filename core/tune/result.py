"""Results of trials, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.trials.outcome import Outcome
from core.tune.choice import Choice


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one trial.

    Attributes:
        choice: What was tried.
        outcome: "measured", or why there are no figures.
        samples_per_s: Of all ranks together; 0 where nothing was measured.
        step_s: Seconds of an optimizer step.
        exchange: How gradients travelled: "shared", "gloo", "nccl", …; empty in modes without such a choice.
        round_s: Seconds of one round that synchronises independent ranks; None without rounds.
        took_s: Of the whole trial, building the model included.
        need_bytes: Of the largest rank, as estimated; None is not known.
        cause: Why there are no figures, as a sentence.
    """

    choice: Choice
    outcome: Outcome
    samples_per_s: float = 0.0
    step_s: float = 0.0
    exchange: str = ""
    round_s: float | None = None
    took_s: float = 0.0
    need_bytes: int | None = None
    cause: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether it has figures."""
        return self.outcome == "measured"

    @property
    def is_short(self) -> bool:
        """Whether memory did not suffice, or would not: a larger micro-batch need not be tried."""
        return self.outcome in ("too_large", "out_of_memory", "killed")

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        choice = self.choice
        return {
            "batch_size": choice.micro_batch,
            "grad_accum_steps": choice.accumulation,
            "gradient_exchange": choice.exchange or None,
            "backend": choice.backend or None,
            "grad_checkpointing": choice.checkpointing,
            "torch_compile": choice.compiles,
            "outcome": self.outcome,
            "samples_per_s": self.samples_per_s if self.is_measured else None,
            "step_s": self.step_s if self.is_measured else None,
            "exchange": self.exchange or None,
            "predicted_bytes": self.need_bytes,
            "cause": self.cause,
        }
