"""Room: whether trials would leave enough memory, by the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import device_label
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.free import Free, free_now
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.probe import known_baselines, known_figures

CHECKPOINTING: Final = "grad_checkpointing"
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
    copies = [0 if saves else need.memory.copy for need in made.devices]
    needs = [
        (need.memory.total - copy, free.devices.get(need.device.uuid), f"on {device_label(need.device)}")
        for need, copy in zip(made.devices, copies, strict=True)
        if need.device.kind == "cuda"
    ]
    if saves or not needs:
        needs.append((made.host_bytes - sum(copies), free.ram, "in this machine's memory"))
    if made.commit_bytes is not None:
        needs.append((made.commit_bytes - sum(copies), free.commit, "in memory and page file"))
    for need, left, where in needs:
        if left is not None and need > share * left:
            most = "" if share == 1 else f"{100 * share:.0f} % of "
            return f"It needs about {memory_size(need)}, more than {most}the {memory_size(left)} that are free {where}."
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
