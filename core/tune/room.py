"""Room: whether a trial would leave enough memory, by the estimate. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.estimate.estimate import estimate_run
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.free import Free
from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.names import device_label
from core.tune.choice import CHECKPOINTING

SHARE: Final = 0.8
"""Of what is free: beyond it a CPU rank may meet the system's out-of-memory killer, and a GPU under Windows spills."""
_UNKNOWN: Final = "The model's memory is not known, so nothing larger than the run's own micro-batch is tried."


@dataclass(frozen=True, slots=True)
class Room:
    """What a trial may take.

    Attributes:
        figures: Of the model as the run has it.
        stored: Of the model without gradient checkpointing, where the run has it on; None: not known.
        baselines: Of bare ranks.
        free: What was free before the first trial.
    """

    figures: ModelFigures
    baselines: Baselines
    free: Free
    stored: ModelFigures | None = None

    def need_bytes(self, start: ResolvedRun, run: ResolvedRun) -> int | None:
        """Of the largest rank; None is not known."""
        figures = self._figures(start, run)
        if figures is None or not figures.is_measured:
            return None
        return estimate_run(run, figures, self.baselines, self.free).largest

    def shortage(self, start: ResolvedRun, run: ResolvedRun) -> str:
        """Why a trial is not made, as a sentence; empty where there is room.

        Args:
            start: The run as it is.
            run: It with the settings to try.
        """
        figures = self._figures(start, run)
        if figures is None or not figures.is_measured:
            larger = run.batch.micro > start.batch.micro
            return _UNKNOWN if larger or _checkpointing(run) != _checkpointing(start) else ""
        needs = estimate_run(run, figures, self.baselines, self.free)
        for need in needs.devices:
            if need.free_bytes is not None and need.memory.total > SHARE * need.free_bytes:
                return _sentence(need.memory.total, need.free_bytes, f"on {device_label(need.device)}")
        if self.free.ram is not None and needs.host_bytes > SHARE * self.free.ram:
            return _sentence(needs.host_bytes, self.free.ram, "in this machine's memory")
        commit, free_commit = needs.commit_bytes, self.free.commit
        if commit is not None and free_commit is not None and commit > SHARE * free_commit:
            return _sentence(commit, free_commit, "in memory and page file")
        return ""

    def _figures(self, start: ResolvedRun, run: ResolvedRun) -> ModelFigures | None:
        if _checkpointing(start) and not _checkpointing(run):
            return self.stored
        return self.figures  # with checkpointing it needs less than without


def _checkpointing(run: ResolvedRun) -> bool:
    return run.config.options.get(CHECKPOINTING) is True


def _sentence(need: int, free: int, where: str) -> str:
    most = f"{100 * SHARE:.0f} % of the {memory_size(free)} that are free {where}"
    return f"It needs about {memory_size(need)}, more than {most}."
