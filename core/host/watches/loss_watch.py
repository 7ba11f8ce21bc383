"""Loss watch: reports a script's loss that is not finite. Recipes report their own (`workers.training.divergence`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.watches.watch import Watch


class LossWatch(Watch):
    """Emits an alert once a stretch, which lasts until the losses of all ranks are finite again."""

    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._emit = services.stream.emit
        self._is_on = ranks.run.recipe.self_contained
        self._bad: set[int] = set()

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        """A number that was not finite is null in a line, and its name in `nonfinite`."""
        for line in lines if self._is_on else ():
            bad = [name for name in line.get("nonfinite") or () if "loss" in str(name)]
            if not bad:
                if any("loss" in name and value is not None for name, value in line.items()):
                    self._bad.discard(rank.number)
                continue
            first = not self._bad
            self._bad.add(rank.number)
            if first:
                self._report(rank, line.get("step"), str(bad[0]))

    def _report(self, rank: Rank, step: Any, name: str) -> None:
        at = f" at step {step}" if isinstance(step, int) else ""
        what = "the loss" if name == "loss" else f"“{name}”"
        self._emit(
            "alert",
            kind="nonfinite_loss",
            of=rank.number,
            step=step if isinstance(step, int) else None,
            title="The loss is not finite",
            cause=f"{rank.device} reports {what} as NaN or infinite{at}.",
            next_step="Stop the run, lower the learning rate or check the data of that step, and continue from the "
            "script's last good checkpoint.",
        )
