"""Training horizon: the number of steps of a rank, and each step's place in the learning rate's schedule.

`steps` and `epochs` set it before the first step; a recipe's goal may end the training earlier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.config.lr_schedule import Schedule, saved_schedule
from core.protocol.messages import GoalProgress
from workers.optim.optimizer import Optimization
from workers.training.setup import TrainingSetup


class Horizon:
    def __init__(self, setup: TrainingSetup) -> None:
        self._session = setup.session
        self._strategy = setup.strategy
        self._optimization = setup.task.optimization
        self._goal = setup.task.goal
        self._batches = setup.batches
        config = self._session.config
        self._schedule = Schedule.new(self._planned_steps(), (config.steps, config.epoch_limit), config.lr_schedule)

    @property
    def is_reached(self) -> bool:
        return self._session.step >= self._schedule.ends or self._has_reached_goal

    @property
    def has_steps_left(self) -> bool:
        """Whether this rank expects to make another step: its vote in a round of local SGD."""
        expects = self._session.step < self._schedule.ends and not self._batches.exhausted
        return expects and not self._has_reached_goal

    def lr(self) -> float:
        schedule, peak = self._schedule, self._session.config.lr * self._schedule.scale
        rule = self._optimization if schedule.warms_up else replace(self._optimization, warmup_steps=0)
        return rule.lr(schedule.place(self._session.step), schedule.length, peak)

    def report_goal(self) -> None:
        """Report how near the goal is, and the steps that the run will have made by then at the pace so far."""
        progress = None if self._goal is None else self._goal.progress()
        if progress is None or self._strategy.place.rank != 0 or not self._batches.between_chunks:
            return
        share, text = progress
        step = self._session.step
        total = None if share <= 0 else min(self._schedule.ends, max(step, math.ceil(step / share)))
        self._session.reporter.send(GoalProgress(total, text))

    def counters(self) -> dict[str, Any]:
        return {
            "schedule": self._schedule.as_dict(),
            **self._lr_rule(),
            **({} if self._goal is None else {"goal": self._goal.counters()}),
        }

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Continue a saved schedule and goal at the session's step."""
        if (schedule := saved_schedule(counters.get("schedule"))) is not None:
            self._schedule = schedule.resumed(self._schedule, self._session.step, self._optimization.lr_curve)
        if self._goal is not None and counters.get("goal"):
            self._goal.restore(counters["goal"])

    def _lr_rule(self) -> dict[str, Any]:
        """Figures by which a resume plan computes the rate without torch; none for a recipe with a rule of its own."""
        rule = self._optimization
        if type(rule).lr is not Optimization.lr:
            return {}
        figures = {"peak": self._session.config.lr, "warmup_steps": rule.warmup_steps}
        return {"lr_rule": {**figures, "min_lr_ratio": rule.min_lr_ratio}}

    @property
    def _has_reached_goal(self) -> bool:
        return self._goal is not None and self._batches.between_chunks and self._goal.is_reached()

    def _planned_steps(self) -> int:
        """Steps of this rank's replica group: `steps`, or those of the epochs, whichever is less."""
        config, strategy = self._session.config, self._strategy
        epochs = config.epochs if config.epochs is not None else (1 if config.steps is None else None)
        if epochs is None:
            return config.steps or 0
        start = self._session.start
        if start is not None and start.steps_left is not None:
            of_epochs = start.step + start.steps_left
        else:
            of_epochs = self._batches.plan.group_steps(
                epochs, strategy.replica_group, strategy.replica_groups, self._batches.global_batch
            )
        return of_epochs if config.steps is None else min(config.steps, of_epochs)
