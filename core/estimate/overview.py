"""Overview of an estimate: all that is shown of it, by the command line and in the window."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from core.config.batch import Batch
from core.estimate.estimate import ModeEstimate, estimate_modes, estimate_run
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.free import Free
from core.estimate.remedies import Remedy, as_fitted, remedies
from core.launch.resolved import ResolvedRun


@dataclass(frozen=True, slots=True)
class Overview:
    """A run beside what is free.

    Attributes:
        run: As it would start now.
        figures: Of its model.
        free: What is free.
        chosen: It in its own mode.
        modes: It in every mode.
        remedies: What would make it fit, if it does not, or if memory ran out with it before.
    """

    run: ResolvedRun
    figures: ModelFigures
    free: Free
    chosen: ModeEstimate
    modes: tuple[ModeEstimate, ...]
    remedies: tuple[Remedy, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "recipe": self.run.recipe.name,
            "devices": [device.uuid for device in self.run.devices],
            "mode": self.chosen.name,
            "parameters": self.figures.parameters,
            "trainable": self.figures.trainable,
            "is_measured": self.figures.is_measured,
            "note": self.figures.note,
            "free": {
                "ram_bytes": self.free.ram,
                "commit_bytes": self.free.commit,
                "disk_bytes": self.free.disk,
            },
            "modes": [_mode_values(mode) for mode in self.modes],
            "remedies": [dataclasses.asdict(remedy) for remedy in self.remedies],
        }


def overview(
    run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free, fitted: Batch | None = None
) -> Overview:
    """A run's overview. Pure, and quick.

    Args:
        run: What would be trained.
        figures: Of its model.
        baselines: Of bare ranks.
        free: What is free.
        fitted: The batch that is left since memory ran out with this model on these devices; None: it never did.
    """
    after_shortage = () if fitted is None else (as_fitted(run, fitted, figures, baselines, free),)
    return Overview(
        run,
        figures,
        free,
        estimate_run(run, figures, baselines, free),
        estimate_modes(run, figures, baselines, free),
        (*after_shortage, *remedies(run, figures, baselines, free)),
    )


def _mode_values(made: ModeEstimate) -> dict[str, Any]:
    if made.reason:
        return {"mode": made.name, "reason": made.reason}
    return {
        "mode": made.name,
        "engine": made.engine,
        "batch": None if made.batch is None else dataclasses.asdict(made.batch),
        "verdict": made.verdict,
        "sentence": made.sentence(),
        "predicted_bytes": made.largest,
        "host_bytes": made.host_bytes,
        "commit_bytes": made.commit_bytes,
        "checkpoint_bytes": made.checkpoint_bytes,
        "disk_bytes": made.disk_bytes,
        "devices": [
            {
                "device": need.device.uuid,
                "free_bytes": need.free_bytes,
                "verdict": need.verdict,
                **{f"{name}_bytes": value for name, value in need.memory.as_dict().items()},
            }
            for need in made.devices
        ],
    }
