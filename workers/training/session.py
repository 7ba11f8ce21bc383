"""Session of one rank: its config, its place among the ranks, its data, its line to the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from core.config import RunConfig
from core.config.batch import Batch
from core.protocol.messages import DataReady, Phase, RankStart
from workers.host_link.inbox import Inbox
from workers.host_link.reporter import Reporter
from workers.strategies import Strategy


@dataclass(slots=True)
class Session:
    """One rank of one attempt.

    Attributes:
        config: The run's, complete with the recipe's defaults.
        run_dir: The run's folder; ranks write to `data/` and to what `CommitTo` names only.
        batch: The batch arithmetic of this rank's replica group.
        halvings: Halvings of its micro-batch since the host started.
        resume_folder: The checkpoint to resume from, or None.
        data: The dataset as rank 0 prepared it; set before training.
        first_step: The first step of this attempt, known after resuming.
        step: Optimizer steps done.
        best_metric: A checkpoint is taken whenever this metric of the evaluations improves; empty: not.
        keep_sampling: Whether a text that is being written continues; see `recipe_api.Run.keep_sampling`.
    """

    config: RunConfig
    run_dir: Path
    strategy: Strategy
    batch: Batch
    reporter: Reporter
    inbox: Inbox
    resume_folder: Path | None = None
    halvings: int = 0
    best_metric: str = ""
    best_is_higher: bool = False
    data: DataReady = field(default_factory=lambda: DataReady(0, 0))
    first_step: int = 1
    step: int = 0
    keep_sampling: Callable[[bool], bool] = field(default=lambda broken: not broken)

    @property
    def data_dir(self) -> Path:
        return self.run_dir / "data"

    @property
    def start(self) -> RankStart | None:
        """The step and counters to begin with, once the data is ready; None where the host has not said them."""
        return self.data.start

    def phase(self, name: str, detail: str = "") -> None:
        self.reporter.send(Phase(name, detail))
