"""Values of tuning: its trials, the micro-batch to try next, the comparison in turns, and the sentence. Pure.

Micro-batches are doubled while memory suffices and steps do not get slower. Where larger ones are no faster, smaller
ones are tried. The same results give the same next trial.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import ConfigError
from core.formatting import UNKNOWN, memory_size, rate, short_duration
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun, resolve_on
from core.measure.trial import OUTCOMES, Outcome

LEAST_PAIRS: Final = 3
# A gain of less than this is not worth a change of settings.
WORTH: Final = 0.02
# A trial with less than this share of the best speed is slower; twice in a row end the doubling.
SLOWER: Final = 0.95
# So much faster must a trial be to be preferred: speeds of single trials differ by a few per cent by chance.
GAIN: Final = 1.02
# Student's t by degrees of freedom from 1 on; beyond them the last one, which is a little too strict.
_ONE_SIDED_95: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
_TITLE: Final = "This run cannot be tuned"
# Of the table of trials, for the command line and the window.
COLUMNS: Final = ("Micro-batch", "Accumulation", "Needs", "Step", "Speed", "Result")


def check_tunable(run: ResolvedRun) -> None:
    """Refuse runs that cannot be tuned.

    Raises:
        ConfigError: A program of the person's own, DeepSpeed, or a model that is compiled.
    """
    if run.recipe.self_contained:
        raise ConfigError(
            "recipe",
            "Your script chooses its own batches and steps, so Rankdeck cannot try others with it.",
            "Choose a recipe to tune.",
            title=_TITLE,
        )
    if run.choice.engine == DEEPSPEED:
        raise ConfigError(
            "zero_engine",
            "DeepSpeed counts micro-batches itself, so no others are tried with it.",
            "Choose PyTorch as ZeRO engine to tune; both engines train the same model.",
            title=_TITLE,
            option="--zero-engine torch",
        )
    if run.compiles:
        raise ConfigError(
            "torch_compile",
            "With torch.compile on, every trial would compile the model again.",
            "Turn it off to tune.",
            title=_TITLE,
            option="--no-torch-compile",
        )


def rank_share(run: ResolvedRun) -> int:
    """Samples of one rank in a step; the global batch stays, so every micro-batch divides it."""
    return run.batch.micro * run.batch.accumulation


def in_micro_batches(run: ResolvedRun, size: int) -> ResolvedRun:
    """Resolve the run with another micro-batch and as much more or less accumulation.

    Raises:
        ConfigError, PreflightError: That is not possible.
    """
    if size == run.batch.micro:
        return run
    return resolve_on(run.config.replace(**_changes(run, size)), run.recipe, run.devices, run.platform)


def _changes(run: ResolvedRun, size: int) -> dict[str, Any]:
    return {"batch_size": size, "grad_accum_steps": rank_share(run) // size}


@dataclass(frozen=True, slots=True)
class Result:
    """One trial.

    Attributes:
        samples_per_s: Of all ranks together; 0 where nothing was measured.
        step_s: Seconds of an optimizer step.
        took_s: Of the whole trial, building the model included.
        need_bytes: Of the largest rank, as estimated; None is not known.
        cause: Why there are no figures, as a sentence.
    """

    micro_batch: int
    accumulation: int
    outcome: Outcome
    samples_per_s: float = 0.0
    step_s: float = 0.0
    took_s: float = 0.0
    need_bytes: int | None = None
    cause: str = ""

    @property
    def is_measured(self) -> bool:
        return self.outcome == "measured"

    @property
    def is_short(self) -> bool:
        """Whether memory did not suffice, or would not: a larger micro-batch need not be tried."""
        return self.outcome in ("too_large", "out_of_memory", "killed")

    def as_dict(self) -> dict[str, Any]:
        return {
            "batch_size": self.micro_batch,
            "grad_accum_steps": self.accumulation,
            "outcome": self.outcome,
            "samples_per_s": self.samples_per_s if self.is_measured else None,
            "step_s": self.step_s if self.is_measured else None,
            "predicted_bytes": self.need_bytes,
            "cause": self.cause,
        }

    def cells(self, *, is_best: bool) -> tuple[str, ...]:
        """The row of the table, in the order of `COLUMNS`; `is_best`: it is the fastest so far."""
        return (
            str(self.micro_batch),
            str(self.accumulation),
            memory_size(self.need_bytes),
            short_duration(self.step_s) if self.is_measured else UNKNOWN,
            rate(self.samples_per_s, "samples/s") if self.is_measured else UNKNOWN,
            "fastest" if is_best else OUTCOMES[self.outcome],
        )


_Steps = Generator[int, Result, None]
_Found = Generator[int, Result, Result]


def next_trial(start: int, share: int, results: Sequence[Result]) -> int | None:
    """Return the micro-batch to try after these results, in the order in which they came; None: none is left.

    Args:
        start: The run's own micro-batch.
        share: See `rank_share`.
        results: Of the trials so far.
    """
    steps = _search(start, [size for size in range(1, share + 1) if share % size == 0])
    try:
        wanted = next(steps)
        for result in results:
            wanted = steps.send(result)
    except StopIteration:
        return None
    return wanted


def fastest(results: Sequence[Result]) -> Result | None:
    """Return the fastest trial; None if none was measured.

    Among trials that differ by no more than noise, the one that came first: it changes less.
    """
    best: Result | None = None
    for result in results:
        if result.is_measured:
            best = result if best is None else _faster(best, result)
    return best


def _search(start: int, sizes: Sequence[int]) -> _Steps:
    first = best = yield start
    if first.is_measured:
        best = yield from _larger(first, sizes)
    if best is first and (first.is_measured or first.is_short):
        yield from _smaller(first, sizes)


def _larger(best: Result, sizes: Sequence[int]) -> _Found:
    last, slower = best, 0
    while slower < 2 and (size := _doubled(last.micro_batch, sizes)) is not None:
        tried = yield size
        if not tried.is_measured:
            return best
        slower = slower + 1 if tried.samples_per_s < SLOWER * best.samples_per_s else 0
        best, last = _faster(best, tried), tried
    return best


def _smaller(best: Result, sizes: Sequence[int]) -> _Steps:
    last = best
    while (size := max((other for other in sizes if other <= last.micro_batch // 2), default=None)) is not None:
        last = tried = yield size
        if not tried.is_measured and not tried.is_short:
            return
        was_measured, best = best.is_measured, _faster(best, tried)
        if was_measured and best is not tried:
            return


def _faster(best: Result, tried: Result) -> Result:
    if not tried.is_measured:
        return best
    if not best.is_measured:
        return tried
    return tried if tried.samples_per_s > GAIN * best.samples_per_s else best


def _doubled(size: int, sizes: Sequence[int]) -> int | None:
    """Return the largest size up to twice as much; where there is none, the next larger."""
    larger = [other for other in sizes if other > size]
    return max((other for other in larger if other <= 2 * size), default=min(larger, default=None))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A found micro-batch against the run's own.

    Attributes:
        ratios: Speed of the found one ÷ that of the run's own, in each pair of turns.
    """

    ratios: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean ratio; 1 where there is none."""
        return statistics.geometric_mean(self.ratios) if self.ratios else 1.0

    @property
    def certain_gain(self) -> float:
        """Lower bound of the mean ratio, with a certainty of 95 % given how much the pairs differ; 0 with too few."""
        if len(self.ratios) < LEAST_PAIRS:
            return 0.0
        logs = [math.log(ratio) for ratio in self.ratios]
        t = _ONE_SIDED_95[min(len(logs) - 1, len(_ONE_SIDED_95)) - 1]
        return math.exp(statistics.mean(logs) - t * statistics.stdev(logs) / math.sqrt(len(logs)))

    @property
    def is_faster(self) -> bool:
        """Whether the found micro-batch is faster beyond the noise.

        By more than `WORTH`, in the mean and in the middle pair, so that one turn in which another program was in the
        way does not decide; and by more than the pairs differ.
        """
        if len(self.ratios) < LEAST_PAIRS:
            return False
        return min(self.gain, statistics.median(self.ratios)) >= 1 + WORTH and self.certain_gain > 1


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of tuning.

    Attributes:
        run: As it was before.
        results: Of all trials, in their order; the first is the run as it is.
        comparison: The fastest micro-batch against the run's own, in turns; None where there was none.
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
    def changes(self) -> dict[str, Any]:
        """Settings that are better than the run's own; empty where those are best, or nothing is known for certain."""
        best, own_fails = self.best, bool(self.results) and self.results[0].is_short and not self.is_stopped
        if best is None or best.micro_batch == self.run.batch.micro:
            return {}
        is_faster = self.comparison is not None and self.comparison.is_faster
        return _changes(self.run, best.micro_batch) if own_fails or is_faster else {}

    @property
    def flags(self) -> list[str]:
        return [part for name, value in self.changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]

    @property
    def sentence(self) -> str:
        best, made = self.best, self.comparison
        if best is None:
            cause = self.results[0].cause if self.results else ""
            return f"No settings could be measured. {cause}".strip()
        text = f"micro-batch {best.micro_batch}, accumulation {best.accumulation}"
        if self.changes and made is None:
            return f"Your settings don't work here: {self.results[0].cause} The fastest that do: {text}."
        if self.changes and made is not None:
            turns = f"at least {made.certain_gain:.2f} ×, from {len(made.ratios)} pairs of turns"
            return f"{text.capitalize()}: {made.gain:.2f} × as fast as your settings ({turns})."
        if self.is_stopped:
            if best.micro_batch == self.run.batch.micro:
                return "Stopped early. Nothing that was tried is faster than your settings."
            return f"Stopped early. Fastest so far: {text}; it was not compared with your settings in turns."
        if made is None:
            return "Your settings are the fastest of those that were tried."
        if not made.ratios:
            return f"Your settings are best: the fastest others ({text}) could not be measured again."
        noise = "" if made.gain < 1 else ", which may be chance"
        span = f"{min(made.ratios):.2f} to {max(made.ratios):.2f} ×"
        return f"Your settings are best: the fastest others ({text}) were {span} as fast when both took turns{noise}."

    def as_dict(self) -> dict[str, Any]:
        comparison = self.comparison
        return {
            "trials": [result.as_dict() for result in self.results],
            "recommended": self.changes or None,
            "flags": self.flags,
            "gain": None if comparison is None else comparison.gain,
            "certain_gain": None if comparison is None else comparison.certain_gain,
            "ratios": [] if comparison is None else list(comparison.ratios),
            "stopped": self.is_stopped,
            "sentence": self.sentence,
        }
