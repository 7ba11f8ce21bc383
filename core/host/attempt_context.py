"""Attempt context: everything that one attempt borrows from the host, and the events it reports back."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from core.checkpoints.restore_plan import RestorePlan
from core.checkpoints.store import Checkpoint, CheckpointStore
from core.host.commits.ledger_keeper import LedgerKeeper
from core.host.stop_ladder import StopLadder
from core.launch.plan import LaunchPlan
from core.launch.resolved import ResolvedRun
from core.processes import ProcessTree


class AttemptEvents(Protocol):
    """Events that an attempt reports to its host."""

    def phase_changed(self, phase: str) -> None:
        """The attempt's current activity, as text for state.json."""

    def training_began(self) -> None:
        """The first step was made."""

    def data_ready(self) -> None:
        """The dataset's size is known, and with it the ledger."""

    def stepped(self, step: int, epoch: int, loss: float | None, tokens_per_s: float | None) -> None:
        """New figures: the furthest rank's step, the mean loss, the throughput of all."""

    def goal_moved(self, total_steps: int | None, text: str) -> None:
        """Progress towards the goal that ends the run, and the steps that the run is expected to make."""

    def emit(self, event: str, **fields: Any) -> None:
        """Writes a line of the host's own into the metrics."""

    def settle_metrics(self, timeout_s: float) -> bool:
        """Waits, on a thread, until the metrics up to now are safe on the disk; False: they are not."""

    def committed(self, checkpoint: Checkpoint) -> None:
        """A checkpoint exists."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """Inputs of an attempt; all of them belong to the host.

    Attributes:
        plan: The ranks and how each one is started.
        checkpoint: Where the ranks continue from.
        restore_plan: What of it each rank restores.
        run: What this attempt trains.
        start_timeout_s: Limit for the first step, counted again from the moment the data is ready.
        keep_checkpoints: How many of the newest stay.
        survivor_timeout_s: Time limit for independent ranks to commit once more after another rank failed.
        processes: Owns the attempt's processes; closed with the attempt.
    """

    plan: LaunchPlan
    checkpoint: Checkpoint | None
    restore_plan: RestorePlan
    run: ResolvedRun
    checkpoints: CheckpointStore
    keeper: LedgerKeeper
    disk: Executor
    ladder: StopLadder
    start_timeout_s: float
    keep_checkpoints: int
    survivor_timeout_s: float
    processes: ProcessTree
