"""Hang watch: reports ranks in training that have sent nothing for long. A rank that hangs neither fails nor ends.

It only reports. A rank may be silent for a reason that the host does not know, and only a person can tell that from a
hang.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from core.formatting import listed
from core.host.ranks import Rank, Ranks
from core.protocol.rank_context import ENV_SILENT_AFTER

_SILENT_AFTER_S: Final = 60.0
_PAUSES: Final = 5.0
"""Times its longest pause so far that a rank may be silent: some recipes play games between two chunks."""
_AT_WORK: Final = 10.0
"""Times the limit while a rank reports a long activity, such as evaluating."""
_AWAY_S: Final = 5.0
"""Between two looks; after a longer gap the whole computer was asleep or suspended, so no rank is late."""


class HangWatch:
    """Checks when each rank was last heard, and reports once until all are heard again.

    Args:
        change_phase: Publishes the run's current activity, as text.
        emit: Writes an event into the metrics.
        after_s: How long a rank may say nothing; None for what the environment says, or a minute.
    """

    def __init__(
        self,
        ranks: Ranks,
        change_phase: Callable[[str], None],
        emit: Callable[..., None],
        after_s: float | None = None,
    ) -> None:
        self._ranks = ranks
        self._change_phase = change_phase
        self._emit = emit
        self._after_s = _from_environment() if after_s is None else after_s
        self._looked_at: float | None = None
        self._reported = False

    def look(self, now: float) -> None:
        """Checks all ranks once, `now` on the monotonic clock."""
        if self._looked_at is not None and now - self._looked_at > _AWAY_S:
            for rank in self._ranks:
                rank.heard_at = now
        self._looked_at = now
        silent = [rank for rank in self._ranks if self._is_silent(rank, now)]
        if silent and not self._reported:
            self._reported = True
            self._report(silent, now)
        elif not silent and self._reported:
            self._reported = False
            self._change_phase("")

    def _is_silent(self, rank: Rank, now: float) -> bool:
        if not rank.trains or rank.heard_at is None:
            return False
        limit_s = max(self._after_s, _PAUSES * rank.longest_pause_s)
        return now - rank.heard_at > (_AT_WORK * limit_s if rank.takes_its_time else limit_s)

    def _report(self, silent: Sequence[Rank], now: float) -> None:
        names = listed([rank.device for rank in silent])
        where = listed([f"{rank.device} (step {rank.step})" for rank in silent])
        logs = listed([f"logs/{rank.command.log.name}" for rank in silent])
        since_s = max(now - (rank.heard_at or now) for rank in silent)
        usual_s = max(rank.longest_pause_s for rank in silent)
        cause = f"From {where} there was no message for {since_s:.0f} s; "
        cause += f"the longest pause before was {usual_s:.1f} s."
        if self._ranks.synchronised and len(self._ranks.all) > 1:
            cause += " Devices that train in step wait for each other: one that hangs holds up all."
        self._change_phase(f"{names} may hang: see Alerts")
        self._emit(
            "alert",
            kind="silence",
            ranks=[rank.number for rank in silent],
            title=f"{names} may hang",
            cause=cause,
            next_step=f"The run was not stopped. Check the device and {logs}. If nothing more comes, "
            f"press Stop twice, then Resume: {self._resumes()}",
        )

    def _resumes(self) -> str:
        if self._ranks.run.recipe.self_contained:
            return "the script starts again and decides where it continues."
        return "the run continues from its last checkpoint."


def _from_environment() -> float:
    try:
        return max(0.1, float(os.environ.get(ENV_SILENT_AFTER, "")))
    except ValueError:
        return _SILENT_AFTER_S
