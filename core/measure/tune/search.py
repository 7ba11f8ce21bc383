"""Search: which settings are tried next, given all results so far. Pure: the same results give the same next trial.

One setting after the other, each with the best of those before it:

1. The settings as they are.
2. The micro-batch: doubled while memory suffices and steps do not get slower; between the last that fitted and the
   first that did not, halfway. Where larger ones are no faster, smaller ones.
3. The gradient all-reduce: the way that the first trial did not take.
4. Gradient checkpointing: on where memory ended the search for a larger micro-batch, off where it is on.
5. torch.compile, last: compiling takes longer than all other trials together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.measure.trial import Outcome
from core.measure.tune.choice import Choice

# A trial with less than this share of the best speed is slower; twice in a row end the doubling.
SLOWER: Final = 0.95
# So much faster must a trial be to be preferred: speeds of single trials differ by a few per cent by chance.
MICRO_BATCH_GAIN: Final = 1.02
OTHER_GAIN: Final = 1.05


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
        return self.outcome == "measured"

    @property
    def is_short(self) -> bool:
        """Whether memory did not suffice, or would not: a larger micro-batch need not be tried."""
        return self.outcome in ("too_large", "out_of_memory", "killed")

    def as_dict(self) -> dict[str, Any]:
        choice = self.choice
        return {
            "batch_size": choice.micro_batch,
            "grad_accum_steps": choice.accumulation,
            "gradient_exchange": choice.exchange or None,
            "grad_checkpointing": choice.checkpointing,
            "torch_compile": choice.compiles,
            "outcome": self.outcome,
            "samples_per_s": self.samples_per_s if self.is_measured else None,
            "step_s": self.step_s if self.is_measured else None,
            "exchange": self.exchange or None,
            "predicted_bytes": self.need_bytes,
            "cause": self.cause,
        }


_Steps = Generator[Choice, Result, None]
_Found = Generator[Choice, Result, Result]


def next_trial(start: Choice, results: Sequence[Result]) -> Choice | None:
    """What to try after these results, in the order in which they came; None when nothing is left to try.

    `start`: the settings as they are.
    """
    steps = _search(start)
    try:
        wanted = next(steps)
        for result in results:
            wanted = steps.send(result)
    except StopIteration:
        return None
    return wanted


def fastest(results: Sequence[Result]) -> Result | None:
    """The fastest trial; None if none was measured.

    Among trials that differ by no more than noise, the one that came first: it changes less.
    """
    best: Result | None = None
    for result in results:
        if result.is_measured:
            best = result if best is None else _faster(best, result)
    return best


def _search(start: Choice) -> _Steps:
    first = yield start
    results = [first]
    if not first.is_measured and not first.is_short:
        return
    best = yield from _micro_batch(start.micro_batches, first, results)
    if not best.is_measured:
        return
    best = yield from _exchange(best)
    best = yield from _checkpointing(best, results)
    if best.choice.compiles is not None:
        yield replace(best.choice, compiles=True)


def _micro_batch(sizes: Sequence[int], best: Result, results: list[Result]) -> _Found:
    began = best
    if best.is_measured:
        best = yield from _larger(best, sizes, results)
    if best is began:  # nothing larger was faster
        best = yield from _smaller(best, sizes, results)
    return best


def _larger(best: Result, sizes: Sequence[int], results: list[Result]) -> _Found:
    last, slower = best, 0
    while slower < 2 and (size := _doubled(last.choice.micro_batch, sizes)) is not None:
        tried = yield last.choice.in_micro_batches(size)
        results.append(tried)
        if not tried.is_measured:
            return (yield from _between(best, last, size, sizes, results)) if tried.is_short else best
        slower = slower + 1 if tried.samples_per_s < SLOWER * best.samples_per_s else 0
        best, last = _faster(best, tried), tried
    return best


def _between(best: Result, fits: Result, too_large: int, sizes: Sequence[int], results: list[Result]) -> _Found:
    """Halves the gap between a micro-batch that fits and one that does not, while the larger ones are faster."""
    low, high = fits.choice.micro_batch, too_large
    while best is fits and (between := [size for size in sizes if low < size < high]):
        size = between[len(between) // 2]
        tried = yield fits.choice.in_micro_batches(size)
        results.append(tried)
        if tried.is_measured:
            best, fits, low = _faster(best, tried), tried, size
        else:
            high = size
    return best


def _smaller(best: Result, sizes: Sequence[int], results: list[Result]) -> _Found:
    last = best
    while (size := _halved(last.choice.micro_batch, sizes)) is not None:
        tried = yield last.choice.in_micro_batches(size)
        results.append(tried)
        last = tried
        if not tried.is_measured and not tried.is_short:
            return best
        was_measured, best = best.is_measured, _faster(best, tried)
        if was_measured and best is not tried:
            return best
    return best


def _exchange(best: Result) -> _Found:
    """The all-reduce that the best trial did not take; its own name says which one that was."""
    own = best.choice.exchange
    if not own or best.exchange == "nccl":
        return best
    other = "auto" if own != "auto" else "shared" if best.exchange == "gloo" else "plain"
    tried = yield replace(best.choice, exchange=other)
    return _faster(best, tried)


def _checkpointing(best: Result, results: Sequence[Result]) -> _Found:
    own = best.choice.checkpointing
    if own is None:
        return best
    if own:
        tried = yield replace(best.choice, checkpointing=False)
        if tried.is_short and (size := _halved(best.choice.micro_batch, best.choice.micro_batches)) is not None:
            tried = yield replace(best.choice.in_micro_batches(size), checkpointing=False)
        return _faster(best, tried)
    short = [result.choice.micro_batch for result in results if result.is_short]
    size = min((size for size in short if size > best.choice.micro_batch), default=None)
    while size is not None:
        tried = yield replace(best.choice.in_micro_batches(size), checkpointing=True)
        if _faster(best, tried) is best:
            return best
        best, size = tried, _doubled(size, best.choice.micro_batches)
    return best


def _faster(best: Result, tried: Result) -> Result:
    if not tried.is_measured:
        return best
    if not best.is_measured:
        return tried
    same = replace(tried.choice, micro_batch=0, accumulation=0) == replace(best.choice, micro_batch=0, accumulation=0)
    least = MICRO_BATCH_GAIN if same else OTHER_GAIN
    return tried if tried.samples_per_s > least * best.samples_per_s else best


def _doubled(size: int, sizes: Sequence[int]) -> int | None:
    """The largest up to twice as much; where there is none, the next larger."""
    larger = [other for other in sizes if other > size]
    return max((other for other in larger if other <= 2 * size), default=min(larger, default=None))


def _halved(size: int, sizes: Sequence[int]) -> int | None:
    return max((other for other in sizes if other <= size // 2), default=None)
