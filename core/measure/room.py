"""Room: whether trials would leave enough memory, by the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.measure.estimate.figures import CHECKPOINTING, Baselines, ModelFigures
from core.measure.estimate.free import Free, free_now
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.probe import known_baselines, known_figures

# Of what is free: beyond it a CPU rank may meet the system's out-of-memory killer, and a GPU under Windows spills.
SHARE: Final = 0.8
_UNKNOWN: Final = "The model's memory is not known, so nothing larger than the run's own micro-batch is tried."


def shortage(
    run: ResolvedRun,
    figures: ModelFigures,
    baselines: Baselines,
    free: Free,
    *,
    share: float = 1.0,
    saves: bool = True,
) -> str:
    """Why a run does not fit into a share of what is free, as a sentence; empty where it may.

    `saves`: it copies checkpoints; trials do not.
    """
    made = estimate_run(run, figures, baselines, free)
    on_gpu = made.devices[0].device.kind == "cuda"
    copies = 0 if saves else sum(need.memory.copy for need in made.devices)
    for need in made.needs:
        if need.device is None and not need.is_commit and on_gpu and not saves:
            continue  # of RAM only the copies are large there
        needed = need.bytes - (0 if need.device else copies)
        if need.free_bytes is not None and needed > share * need.free_bytes:
            most = f"{'' if share == 1 else f'{100 * share:.0f} % of '}the {memory_size(need.free_bytes)}"
            return f"It needs about {memory_size(needed)}, more than {most} that are free {need.place}."
    return ""


def find_shortages(run: ResolvedRun, contenders: Sequence[ResolvedRun]) -> dict[int, str]:
    """Why contenders of a run's benchmark cannot be measured, by their place; none where no model was estimated.

    New run and `rankdeck estimate` measure the model; to do that here would take as long as a benchmark.
    """
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None:
        return {}
    with DeviceMonitor() as monitor:
        free = free_now(monitor.sample(), None)
    found = {place: shortage(one, figures, baselines, free, saves=False) for place, one in enumerate(contenders)}
    return {place: text for place, text in found.items() if text}


@dataclass(frozen=True, slots=True)
class Room:
    """What a trial of tuning may take.

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
        return shortage(run, figures, self.baselines, self.free, share=SHARE)

    def _figures(self, start: ResolvedRun, run: ResolvedRun) -> ModelFigures | None:
        if _checkpointing(start) and not _checkpointing(run):
            return self.stored
        return self.figures  # with checkpointing it needs less than without


def _checkpointing(run: ResolvedRun) -> bool:
    return run.config.options.get(CHECKPOINTING) is True
