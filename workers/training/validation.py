"""Evaluations of one rank: the validation loss and a sampled text, at most once a step, and what a checkpoint keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workers.training.evaluation import Evaluation
from workers.training.sampling import Sampling
from workers.training.setup import TrainingSetup


class Validation:
    """Evaluates the model, and knows its newest validation loss.

    Attributes:
        best_at: The step of the best evaluation of this attempt, where a run keeps its best checkpoint.
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
        """Measures the loss, in the micro-batches of now; None where no sample is held out."""
        return Evaluation.of(self._setup.task, self._session, self._setup.precision)

    def take(self, step: int, *, final: bool = False) -> None:
        """Measures the validation loss and samples a text (the `final` one always), once a step."""
        evaluation = self.evaluation
        if evaluation is None:
            return
        if self._newest is None or self._newest[0] != step:
            self._measure(evaluation, step)
        self._sampling.take(step, final=final)
        self._session.phase("training")  # the host's hang watch is patient with "evaluating"

    def loss_at(self, step: int) -> float | None:
        """The validation loss of this very step, if it was measured and is finite."""
        if self._newest is None or self._newest[0] != step or not math.isfinite(self._newest[1]):
            return None
        return self._newest[1]

    def counters(self) -> dict[str, Any]:
        step, loss = self._newest_finite or (None, None)
        return {"val_step": step, "val_loss": loss}

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Takes up the newest finite loss that an earlier attempt measured."""
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
        """All ranks of a replica group have the same metrics, so they agree on what is best."""
        value = metrics.get(self._session.best_metric, math.nan)
        value = -value if self._session.best_is_higher else value
        if value < self._best:
            self._best, self.best_at = value, step
