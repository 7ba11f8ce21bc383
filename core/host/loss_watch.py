"""Loss watch: reports a script's loss that is not finite. Recipes report their own (`workers.training.divergence`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class LossWatch:
    """Emits an alert once a stretch, which lasts until the losses of all ranks are finite again.

    `devices`: what each rank's device is called.
    """

    def __init__(self, emit: Callable[..., None], devices: Sequence[str]) -> None:
        self._emit = emit
        self._devices = devices
        self._bad: set[int] = set()

    def look(self, rank: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Looks at lines of a rank's; a number that was not finite is null there, and its name in `nonfinite`."""
        for line in lines:
            bad = [name for name in line.get("nonfinite") or () if "loss" in str(name)]
            if not bad:
                if any("loss" in name and value is not None for name, value in line.items()):
                    self._bad.discard(rank)
                continue
            first = not self._bad
            self._bad.add(rank)
            if first:
                self._say(rank, line.get("step"), str(bad[0]))

    def _say(self, rank: int, step: Any, name: str) -> None:
        at = f" at step {step}" if isinstance(step, int) else ""
        what = "the loss" if name == "loss" else f"“{name}”"
        self._emit(
            "alert",
            kind="nonfinite_loss",
            of=rank,
            step=step if isinstance(step, int) else None,
            title="The loss is not finite",
            cause=f"{self._devices[rank]} reports {what} as NaN or infinite{at}.",
            next_step="Stop the run, lower the learning rate or check the data of that step, and continue from the "
            "script's last good checkpoint.",
        )
