"""`Tuned`: what tuning found, as a value with its sentences. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.config.sync import resolve_synchronisation
from core.launch.resolved import ResolvedRun
from core.measure.tune.choice import Choice, changes_flags, changes_text
from core.measure.tune.search import Result, fastest

# Whose turn it is: 0 the run's own settings, 1 those found. Two in a row make a pair, each begun by the other.
TURNS: Final = (0, 1, 1, 0, 0, 1, 1, 0)
LEAST_PAIRS: Final = 3
# A gain of less than this is not worth a change of settings.
WORTH: Final = 0.02
# Student's t by degrees of freedom from 1 on; beyond them the last one, which is a little too strict.
_ONE_SIDED_95: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
# A larger share of the time for rounds is worth a longer sync interval.
SYNC_WORTH: Final = 0.05


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
class Offer:
    """A change that makes steps faster and changes what is learnt, so that only a person can decide on it.

    Attributes:
        text: What it changes and brings, as a sentence.
        changes: Settings and their new values.
    """

    text: str
    changes: Mapping[str, Any]


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
        """The fastest trial that trains the same model."""
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
        """The same for the command line."""
        return changes_flags(self.changes)

    @property
    def largest(self) -> int | None:
        """The largest micro-batch that all ranks could train with; None if none was measured."""
        return max((result.choice.micro_batch for result in self.results if result.is_measured), default=None)

    @property
    def sentence(self) -> str:
        """The result for a person."""
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

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Changes that are faster and change what is learnt."""
        return tuple(filter(None, (self._compressed(), self._sync_interval())))

    def _compressed(self) -> Offer | None:
        best = self.best
        rounded = [result for result in self.results if result.is_measured and not result.choice.is_lossless]
        if best is None or not best.choice.is_lossless or not rounded:
            return None
        found = max(rounded, key=lambda result: result.samples_per_s)
        gain = found.samples_per_s / best.samples_per_s
        if gain < 1 + SYNC_WORTH:
            return None
        name = found.choice.exchange
        return Offer(
            f"With gradients sent as {name} steps were {gain:.2f} × as fast. It rounds gradients, so decide yourself.",
            {"gradient_exchange": name},
        )

    def _sync_interval(self) -> Offer | None:
        rule = resolve_synchronisation(self.run.config) if self.run.mode.is_apart else None
        best = self.best
        if rule is None or best is None or best.round_s is None:
            return None
        alone_s = best.step_s - best.round_s / rule.every
        share = best.round_s / rule.every / best.step_s
        if share <= SYNC_WORTH or alone_s <= 0:
            return None
        every = next(every for every in _round_numbers(rule.every) if best.round_s / every <= SYNC_WORTH * alone_s)
        return Offer(
            f"Rounds take {share:.0%} of the time. With a sync interval of {every} steps they would take less than "
            f"{SYNC_WORTH:.0%}. It changes what is learnt, so decide yourself.",
            {"sync_every": every},
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
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
            "offers": [{"text": offer.text, "changes": dict(offer.changes)} for offer in self.offers],
        }


def _round_numbers(above: int) -> list[int]:
    """1, 2, 5, 10, 20 …, those above a number."""
    numbers = (factor * 10**power for power in range(10) for factor in (1, 2, 5))
    return [number for number in numbers if number > above]
