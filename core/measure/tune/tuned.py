"""`Tuned`: what tuning found, as a value with its sentences. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.formatting import UNKNOWN, memory_size, rate, short_duration
from core.launch.resolved import ResolvedRun
from core.measure.trial import OUTCOMES, transport_title
from core.measure.tune.choice import Choice, changes_flags, changes_text, on_off
from core.measure.tune.search import Result, fastest

# Whose turn it is: 0 the run's own settings, 1 those found. Two in a row make a pair, each begun by the other.
TURNS: Final = (0, 1, 1, 0, 0, 1, 1, 0)
LEAST_PAIRS: Final = 3
# A gain of less than this is not worth a change of settings.
WORTH: Final = 0.02
# Student's t by degrees of freedom from 1 on; beyond them the last one, which is a little too strict.
_ONE_SIDED_95: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
# Of the table of trials, for the command line and the window.
COLUMNS: Final = (
    *("Micro-batch", "Accumulation", "All-reduce", "Checkpointing", "Compiled"),
    *("Needs", "Step", "Speed", "Result"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Settings that were found against a run's own.

    Attributes:
        ratios: Speed of the settings found ÷ that of the run's own, in each pair of turns.
    """

    ratios: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean ratio; 1 where there is none."""
        return statistics.geometric_mean(self.ratios) if self.ratios else 1.0

    @property
    def certain_gain(self) -> float:
        """What the mean ratio is at least, with a certainty of 95 % given how much the pairs differ; 0 with too few."""
        if len(self.ratios) < LEAST_PAIRS:
            return 0.0
        logs = [math.log(ratio) for ratio in self.ratios]
        t = _ONE_SIDED_95[min(len(logs) - 1, len(_ONE_SIDED_95)) - 1]
        return math.exp(statistics.mean(logs) - t * statistics.stdev(logs) / math.sqrt(len(logs)))

    @property
    def is_faster(self) -> bool:
        """Whether the settings found are faster beyond the noise.

        By more than `WORTH`, in the mean and in the middle pair, so that one turn in which another program was in the
        way does not decide; and by more than what the pairs differ.
        """
        if len(self.ratios) < LEAST_PAIRS:
            return False
        return min(self.gain, statistics.median(self.ratios)) >= 1 + WORTH and self.certain_gain > 1

    @property
    def range(self) -> str:
        """The least and the largest ratio: "1.27 to 1.35 ×"; empty where there is none."""
        return f"{min(self.ratios):.2f} to {max(self.ratios):.2f} ×" if self.ratios else ""


def compare(speeds: Sequence[float]) -> Comparison:
    """The comparison that turns made, in the order of `TURNS`; a last one without its partner does not count.

    Args:
        speeds: Samples a second in each turn.
    """
    pairs = len(speeds) // 2
    ratios = []
    for pair in range(pairs):
        by_settings = {TURNS[turn]: speeds[turn] for turn in (2 * pair, 2 * pair + 1)}
        ratios.append(by_settings[1] / by_settings[0])
    return Comparison(tuple(ratios))


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found.

    Attributes:
        run: As it was before.
        results: Of all trials, in their order; the first is the run as it is.
        comparison: The fastest settings against the run's own, in turns; None where there was none.
        is_stopped: It was stopped, by a person or by the end of its time, before the comparison was made.
    """

    run: ResolvedRun
    results: tuple[Result, ...]
    comparison: Comparison | None = None
    is_stopped: bool = False

    @property
    def best(self) -> Result | None:
        return fastest(self.results)

    @property
    def recommended(self) -> Choice | None:
        """Settings that are better than the run's own; None where those are best, or nothing is known for certain."""
        own, best = Choice.of(self.run), self.best
        if best is None or best.choice == own:
            return None
        if self.results and self.results[0].is_short and not self.is_stopped:
            return best.choice
        return best.choice if self.comparison is not None and self.comparison.is_faster else None

    @property
    def changes(self) -> dict[str, Any]:
        """What the recommended settings change; empty where nothing should be changed."""
        return {} if self.recommended is None else self.recommended.changes(self.run)

    @property
    def flags(self) -> list[str]:
        return changes_flags(self.changes)

    @property
    def largest(self) -> int | None:
        """The largest micro-batch that all ranks could train with; None if none was measured."""
        return max((result.choice.micro_batch for result in self.results if result.is_measured), default=None)

    @property
    def sentence(self) -> str:
        if self.best is None:
            cause = self.results[0].cause if self.results else ""
            return f"No settings could be measured. {cause}".strip()
        if self.recommended is not None:
            text = changes_text(self.changes)
            if self.comparison is None:
                return f"Your settings don't work here: {self.results[0].cause} The fastest that do: {text}."
            turns = f"at least {self.comparison.certain_gain:.2f} ×, from {len(self.comparison.ratios)} pairs of turns"
            return f"{text[0].upper()}{text[1:]}: {self.comparison.gain:.2f} × as fast as your settings ({turns})."
        if self.is_stopped:
            return self._stopped()
        if self.comparison is None:
            return "Your settings are the fastest of those that were tried."
        return f"Your settings are best: {self._others()}"

    def _others(self) -> str:
        """How the fastest other settings fared in turns."""
        assert self.best is not None and self.comparison is not None
        others = f"the fastest others ({changes_text(self.best.choice.changes(self.run))})"
        if not self.comparison.ratios:
            return f"{others} could not be measured again."
        noise = "" if self.comparison.gain < 1 else ", which may be chance"
        return f"{others} were {self.comparison.range} as fast when both took turns{noise}."

    def _stopped(self) -> str:
        best = self.best
        if best is None or best.choice == Choice.of(self.run):
            return "Stopped early. Nothing that was tried is faster than your settings."
        text = changes_text(best.choice.changes(self.run))
        return f"Stopped early. Fastest so far: {text}; it was not compared with your settings in turns."

    def as_dict(self) -> dict[str, Any]:
        comparison = self.comparison
        return {
            "trials": [result.as_dict() for result in self.results],
            "recommended": self.changes or None,
            "flags": self.flags,
            "largest_micro_batch": self.largest,
            "gain": None if comparison is None else comparison.gain,
            "certain_gain": None if comparison is None else comparison.certain_gain,
            "ratios": [] if comparison is None else list(comparison.ratios),
            "stopped": self.is_stopped,
            "sentence": self.sentence,
        }


def trial_cells(result: Result, *, is_best: bool) -> tuple[str, ...]:
    """A trial's row in the order of `COLUMNS`; `is_best`: it is the fastest so far."""
    choice, measured = result.choice, result.is_measured
    return (
        str(choice.micro_batch),
        str(choice.accumulation),
        transport_title(result.exchange or choice.exchange),
        on_off(choice.checkpointing),
        on_off(choice.compiles),
        memory_size(result.need_bytes),
        short_duration(result.step_s) if measured else UNKNOWN,
        rate(result.samples_per_s, "samples/s") if measured else UNKNOWN,
        "fastest" if is_best else OUTCOMES[result.outcome],
    )
