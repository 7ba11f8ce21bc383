"""Stop watch: feeds a run's stop rules with evaluations, training time and energy, and ends the run by them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import Checkpoint
from core.host.early_stop import (
    Evaluation,
    StopProgress,
    StopReason,
    best_checkpoint,
    read_progress,
    stop_after_evaluation,
    stop_by_limit,
)
from core.host.services import HostServices
from core.launch.stop_rules import StopRules
from core.metrics.metrics_file import MetricsTail
from core.parsing import ParseError, parse_json
from core.run_folder.state import RunState

PUBLISH_EVERY_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""A longer time between two ticks was no training: the machine slept."""
_RELEVANT: Final = (b'"eval"', b'"launch"')


class StopWatch:
    """The stop rules of one run, over all its attempts.

    Args:
        services: The host's.
        rules: The rules.
        first: The run's state as the host found it.
        stop: Ends the run in order.
    """

    def __init__(
        self, services: HostServices, rules: StopRules, first: RunState, stop: Callable[[StopReason], None]
    ) -> None:
        self.rules = rules
        self._services = services
        self._stop = stop
        self._progress = StopProgress(trained_s=first.trained_s, energy_j=first.energy_j or 0.0)
        self._counts_energy = first.energy_j is not None
        self._counters: dict[str, float] = {}
        self._ticked: float | None = None
        self._published_s = first.trained_s
        self._reason: StopReason | None = None

    def read(self, metrics: Path) -> None:
        """Takes up the evaluations of earlier attempts. Reads the disk."""
        if not self.rules.any:
            return
        tail = MetricsTail(metrics)
        while lines := tail.read():
            found = (_parsed(line) for line in lines if any(name in line for name in _RELEVANT))
            self._progress = read_progress(self.rules, found, self._progress)

    def launched(self, resumed_from: Mapping[str, int] | None) -> None:
        self._ticked = None
        self._counters.clear()
        self._progress = self._progress.taken_back(resumed_from)

    def take(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.rules.any:
            return
        for line in lines:
            before, self._progress = self._progress, self._progress.took(self.rules, line)
            if self._progress is not before:
                self._decide(stop_after_evaluation(self.rules, self._progress))

    def tick(self, now: float, *, training: bool) -> None:
        """Counts the time since the last tick if the run trained."""
        before, self._ticked = self._ticked, now if training else None
        if before is None or not training:
            return
        trained_s = self._progress.trained_s + min(now - before, LONGEST_PAUSE_S)
        self._progress = dataclasses.replace(self._progress, trained_s=trained_s)
        if trained_s - self._published_s >= PUBLISH_EVERY_S:
            self.publish()
        self._decide(stop_by_limit(self.rules, self._progress))

    def publish(self) -> None:
        """Puts the time and the energy into the run's state."""
        self._published_s = self._progress.trained_s
        energy_j = round(self._progress.energy_j, 3) if self._counts_energy else None
        self._services.status.progress(trained_s=round(self._progress.trained_s, 3), energy_j=energy_j)

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Readings of the run's devices; a counter that has started again at zero adds nothing."""
        for row in rows:
            counter, uuid = row.get("energy_j"), str(row.get("uuid"))
            if not isinstance(counter, int | float):
                continue
            before, self._counters[uuid] = self._counters.get(uuid, counter), counter
            self._counts_energy = True
            if self._ticked is not None and counter > before:
                energy_j = self._progress.energy_j + counter - before
                self._progress = dataclasses.replace(self._progress, energy_j=energy_j)

    def best_of(self, checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, Evaluation] | None:
        """The checkpoint with the best evaluated weights, where rules are set."""
        return best_checkpoint(self.rules, self._progress, checkpoints) if self.rules.any else None

    def pinned(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, ...]:
        best = self.best_of(checkpoints)
        return () if best is None else (best[0].number,)

    def model(self, checkpoints: Sequence[Checkpoint]) -> tuple[Path, ...]:
        """The best weights, if a rule has ended the run and a checkpoint holds those of the best evaluation.

        Empty where the last weights are the ones to export, such as those of a better merge.
        """
        found, best = self.best_of(checkpoints), self._progress.best(self.rules)
        if self._reason is None or found is None or best is None or found[1].value != best.value:
            return ()
        merged = self._progress.merged
        if merged is not None and self.rules.metric == "val_loss" and merged < (best.value or 0.0):
            return ()  # what the ranks learned after their last evaluations is better still
        return found[0].weights(found[1].rank)

    def _decide(self, reason: StopReason | None) -> None:
        if reason is None or self._reason is not None:
            return
        self._reason = reason
        self._services.stream.emit(
            "alert",
            kind="early_stop",
            step=self._services.status.state.step,
            rule=reason.rule,
            title="Stopping early",
            cause=reason.cause,
            next_step=f"{self._end()} To train further, resume it with another limit.",
        )
        self._stop(reason)

    def _end(self) -> str:
        if self.rules.in_steps:
            return "The program was asked to stop."
        best = "" if self._progress.best(self.rules) is None else ", and its best weights are exported"
        return f"The run is being saved and stopped{best}."


def _parsed(line: bytes) -> Mapping[str, Any]:
    try:
        value = parse_json(line)
    except ParseError:
        return {}
    return value if isinstance(value, dict) else {}
