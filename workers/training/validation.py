"""Evaluations of one rank: the validation loss and a sampled text, at most once a step, and what a checkpoint keeps."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Final

import torch

from workers.decoding import WeightsNotFiniteError
from workers.optim import seeding
from workers.training.evaluation import Evaluation
from workers.training.setup import TrainingSetup
from workers.training.training_mode import evaluating

# Samples that have taken less than this in all are always taken: it is the share's meaning that they cost little.
FREE_S: Final = 2.0
# A sample may take so long at least before it is cut, or a model that is slow to write would never show a text.
LONGEST_S: Final = 10.0
NOT_FINITE: Final = "(No text: the weights are not finite.)"


class Sampling:
    """One rank's text samples; answers the session's `keep_sampling`.

    A sample is left out where samples have taken their share of the time, a stop is seen between two tokens, and broken
    weights end in a sentence instead of a crash. Where every rank takes part in each forward pass, all ranks sample and
    decide alike; elsewhere rank 0 samples while the others train on.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self._session = session = setup.session
        self._strategy = setup.strategy
        self._began = time.perf_counter()
        self._spent_s = 0.0
        self._last_s = 0.0
        self._until = float("inf")
        self._cut = False
        self._said = False
        self._taken_at: int | None = None
        session.keep_sampling = self._keep_on

    def take(self, step: int, *, final: bool) -> None:
        """Have the model write, and report it, once a step and within the time for it; the `final` sample always."""
        is_ours = self._strategy.place.rank == 0 or self._strategy.forward_is_collective
        if self._setup.task.sample is None or not is_ours or self._taken_at == step:
            return
        if self._agreed(not final and self._spent_s + self._last_s > self._budget_s):
            self._say_left_out(step)
            return
        self._taken_at = step
        began = time.perf_counter()
        self._until = float("inf") if final else began + max(LONGEST_S, self._budget_s - self._spent_s)
        self._cut = False
        text = self._text(step)
        self._last_s = time.perf_counter() - began
        self._spent_s += self._last_s
        if self._strategy.place.rank == 0 and (text or not self._cut):
            cut = {"cut": True} if self._cut else {}
            self._session.reporter.event("sample", step=step, prompt=self._setup.task.sample_prompt, text=text, **cut)

    @property
    def _budget_s(self) -> float:
        """Seconds that samples may have taken up to now."""
        trained_s = time.perf_counter() - self._began - self._spent_s
        return max(FREE_S, self._session.config.sample_share / 100 * trained_s)

    def _agreed(self, wish: bool) -> bool:
        """Whether any rank wishes it, where all have to do the same: clocks differ, and so do arrivals of a stop."""
        collective = self._strategy.forward_is_collective
        return bool(self._strategy.total([float(wish)])[0]) if collective else wish

    def _keep_on(self, broken: bool) -> bool:
        self._session.inbox.poll()
        self._cut = self._cut or self._session.inbox.stop_asked or time.perf_counter() > self._until
        if self._agreed(self._cut or broken):
            self._cut = not broken
            return False
        return True

    def _text(self, step: int) -> str:
        setup, sample = self._setup, self._setup.task.sample
        assert sample is not None
        with seeding.untouched(setup.device), torch.no_grad(), evaluating(setup.model):
            seeding.seed_everything(self._session.config.seed + step)
            try:
                with setup.precision.forward():
                    return sample(setup.replica.evaluated)
            except WeightsNotFiniteError:
                return NOT_FINITE
            except Exception:  # a recipe that draws tokens itself: torch.multinomial raises on NaN
                if all(bool(torch.isfinite(tensor).all()) for tensor in setup.replica.trained()):
                    raise
                return NOT_FINITE

    def _say_left_out(self, step: int) -> None:
        if self._said or self._strategy.place.rank != 0:
            return
        self._said = True
        share = self._session.config.sample_share
        self._session.reporter.event(
            "sample_left_out",
            step=step,
            text=f"No text is sampled at step {step}: samples may take {share:g} % of the time. This is reported once; "
            "the last step is always sampled.",
        )


class Validation:
    """Evaluates the model, and knows its newest validation loss.

    `best_at`: the step of the best evaluation of this attempt, where a run keeps its best checkpoint.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        self._session = setup.session
        self._replica = setup.replica
        self._sampling = Sampling(setup)
        self._setup = setup
        self._newest: tuple[int, float] | None = None
        self._newest_finite: tuple[int, float] | None = None
        self.best_at: int | None = None
        self._best = math.inf

    @property
    def evaluation(self) -> Evaluation | None:
        return Evaluation.of(self._setup.task, self._session, self._setup.precision)

    def take(self, step: int, *, final: bool = False) -> None:
        """Measure the validation loss and sample a text (the `final` one always), once a step."""
        evaluation = self.evaluation
        if evaluation is None:
            return
        if self._newest is None or self._newest[0] != step:
            self._measure(evaluation, step)
        self._sampling.take(step, final=final)
        # The host's hang watch is patient with "evaluating".
        self._session.phase("training")

    def loss_at(self, step: int) -> float | None:
        """The validation loss of this very step, if it was measured and is finite."""
        if self._newest is None or self._newest[0] != step or not math.isfinite(self._newest[1]):
            return None
        return self._newest[1]

    def counters(self) -> dict[str, Any]:
        step, loss = self._newest_finite or (None, None)
        return {"val_step": step, "val_loss": loss}

    def restore(self, counters: Mapping[str, Any]) -> None:
        if counters.get("val_loss") is not None:
            self._newest_finite = (int(counters["val_step"]), float(counters["val_loss"]))

    def _measure(self, evaluation: Evaluation, step: int) -> None:
        self._session.phase("evaluating")
        loss, metrics = evaluation.measure(self._replica.evaluated, self._session.strategy)
        self._newest = (step, loss)
        if math.isfinite(loss):
            self._newest_finite = self._newest
        self._note_best(step, {"val_loss": loss, **metrics})
        if self._session.strategy.group_rank == 0:
            self._session.reporter.event("eval", step=step, val_loss=loss, **metrics)

    def _note_best(self, step: int, metrics: Mapping[str, float]) -> None:
        value = metrics.get(self._session.best_metric, math.nan)
        value = -value if self._session.best_is_higher else value
        if value < self._best:
            self._best, self.best_at = value, step
