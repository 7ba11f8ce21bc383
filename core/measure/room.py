"""Room: whether trials would leave enough memory, by the estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.free import Free, free_now
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.probe import find_baselines, find_figures, known_baselines, known_figures

# Of what is free: beyond it a CPU rank may meet the system's out-of-memory killer, and a GPU under Windows spills.
SHARE: Final = 0.8
_UNKNOWN: Final = "The model's memory is not known, so nothing larger than the run's own micro-batch is tried."


@dataclass(frozen=True, slots=True)
class Room:
    """The figures of a model, and the memory that was free before the first trial."""

    figures: ModelFigures
    baselines: Baselines
    free: Free

    @classmethod
    def find(cls, run: ResolvedRun, *, cancelled: Callable[[], bool] = lambda: False) -> Room:
        """Measure the model where it is not known. Blocks.

        Raises:
            CancelledError: `cancelled` said so.
            RankdeckError: The recipe refuses the run; or the model could not be measured.
        """
        figures, baselines = find_figures(run, cancelled=cancelled), find_baselines(run, cancelled=cancelled)
        return cls(figures, baselines, _free())

    def need_bytes(self, run: ResolvedRun) -> int | None:
        """Memory of the largest rank; None is not known."""
        return estimate_run(run, self.figures, self.baselines, self.free).largest if self.figures.is_measured else None

    def trial_shortage(self, start: ResolvedRun, run: ResolvedRun) -> str:
        """Why a trial of `run` is not made, as a sentence; empty where there is room. `start` is the run as it is."""
        if not self.figures.is_measured:
            return _UNKNOWN if run.batch.micro > start.batch.micro else ""
        return self.shortage(run, SHARE)

    def shortage(self, run: ResolvedRun, share: float = 1.0) -> str:
        """Why a run, which copies no checkpoints, does not fit into a share of what is free; empty where it may."""
        made = estimate_run(run, self.figures, self.baselines, self.free)
        on_gpu = made.devices[0].device.kind == "cuda"
        copies = sum(need.memory.copy for need in made.devices)
        for need in made.needs:
            if need.device is None and not need.is_commit and on_gpu:
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
    room = Room(figures, baselines, _free())
    return {place: text for place, one in enumerate(contenders) if (text := room.shortage(one))}


def _free() -> Free:
    with DeviceMonitor() as monitor:
        return free_now(monitor.sample(), None)
