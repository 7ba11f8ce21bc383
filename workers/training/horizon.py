"""Training horizon: how many steps a rank makes, and where each stands in the learning rate's schedule.

`steps` and `epochs` set it before the first step; a recipe's goal may end the training earlier. Where replica groups
take chunks from each other, only the host knows how much data is left, so the schedule follows each of its grants.
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
    """One rank's horizon; the step it has reached is `Session.step`."""

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
        return self._session.step >= self._last_step or self._has_reached_goal

    @property
    def has_steps_left(self) -> bool:
        """This rank expects to make another step: its vote in a round of local SGD."""
        expects = self._session.step < self._schedule.ends and not self._batches.exhausted
        return expects and not self._has_reached_goal

    def lr(self) -> float:
        """The learning rate of the step that is being made."""
        schedule, peak = self._schedule, self._session.config.lr * self._schedule.scale
        rule = self._optimization if schedule.warms_up else replace(self._optimization, warmup_steps=0)
        return rule.lr(schedule.place(self._session.step), schedule.length, peak)

    def follow_grants(self) -> None:
        """Spreads the rest of the schedule over this batch and those that this replica group may still expect."""
        samples = self._batches.expected
        if samples is not None:
            steps_left = 1 + math.ceil(samples / self._batches.global_batch)
            self._schedule = self._schedule.expecting(self._session.step, steps_left)

    def report_goal(self) -> None:
        """Reports how near the goal is, and how many steps the run will have made by then at the pace so far."""
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
        """Continues a saved schedule at the step that the session has reached, and what was counted of the goal."""
        if (schedule := saved_schedule(counters.get("schedule"))) is not None:
            self._schedule = schedule.resumed(self._schedule, self._session.step, self._optimization.lr_curve)
        if self._goal is not None and counters.get("goal"):
            self._goal.restore(counters["goal"])

    def _lr_rule(self) -> dict[str, Any]:
        """What a resume plan needs to compute the rate without torch; nothing of a recipe with a rule of its own."""
        rule = self._optimization
        if type(rule).lr is not Optimization.lr:
            return {}
        figures = {"peak": self._session.config.lr, "warmup_steps": rule.warmup_steps}
        return {"lr_rule": {**figures, "min_lr_ratio": rule.min_lr_ratio}}

    @property
    def _last_step(self) -> float:
        """The step after which none is made; with chunks taken from other groups, only the host knows the last."""
        config = self._session.config
        if self._strategy.synchronised or not config.work_stealing:
            return self._schedule.ends
        return config.steps if config.steps is not None else math.inf

    @property
    def _has_reached_goal(self) -> bool:
        return self._goal is not None and self._batches.between_chunks and self._goal.is_reached()

    def _planned_steps(self) -> int:
        """Steps of this rank's replica group: `steps`, or what the epochs come to, whichever is less."""
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
