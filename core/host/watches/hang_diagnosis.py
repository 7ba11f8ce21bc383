"""Hang diagnosis: which rank holds up the others, from where each one is, and what follows by policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.config import RunConfig
from core.formatting import listed
from core.host.failures import RankFailure
from core.protocol.messages import Stacks

# What still hangs after three restarts does so for a reason that lies in the run.
RESTARTS: Final = 3


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank at the time of a hang; a rank without a connection, or of a script, cannot be `asked` for its stacks."""

    rank: int
    device: str
    late: bool = True
    stacks: Stacks | None = None
    asked: bool = True
    process: str = "could not be looked at"
    stopped: bool = False

    @property
    def is_stuck(self) -> bool:
        return self.stopped or (self.asked and self.stacks is None)

    @property
    def text(self) -> str:
        if self.stacks is None:
            return f"{self.device}{' does not answer;' if self.asked else ':'} its process {self.process}."
        if self.stacks.waits == "yes":
            return f"{self.device} waits for other devices ({self.stacks.place})."
        if self.stacks.waits == "perhaps":
            return f"{self.device} is in a backward pass, which waits for other devices."
        return f"{self.device} is at {self.stacks.place}."


@dataclass(frozen=True, slots=True)
class HangDiagnosis:
    """The ranks that hang: certain ones, for which others wait or whose processes do not run, or all suspects."""

    culprits: tuple[int, ...]
    certain: bool


def diagnose(views: Sequence[RankView], *, connected: bool) -> HangDiagnosis:
    late = [view.rank for view in views if view.late]
    if not connected:
        stuck = all(view.is_stuck for view in views if view.late)
        return HangDiagnosis(tuple(late), stuck)
    for suspects in (
        [view for view in views if view.stopped],
        [view for view in views if view.is_stuck],
        [view for view in views if view.stacks is not None and view.stacks.waits == "no"],
    ):
        others = [view for view in views if view not in suspects]
        if suspects and (suspects[0].is_stuck or _all_wait(others)):
            return HangDiagnosis(tuple(view.rank for view in suspects), True)
    return HangDiagnosis(tuple(late), False)


def _all_wait(views: Sequence[RankView]) -> bool:
    return bool(views) and all(view.stacks is not None and view.stacks.waits != "no" for view in views)


def title(names: Sequence[str], diagnosis: HangDiagnosis, *, connected: bool) -> str:
    if not diagnosis.certain:
        return f"{listed(names)} may hang"
    if connected:
        return f"{listed(names)} hold{'s' if len(names) == 1 else ''} up the other devices"
    return f"{listed(names)} hang{'s' if len(names) == 1 else ''}"


def restart_limit(config: RunConfig, root: RankFailure | None) -> int:
    if root is None or not root.hung:
        return config.max_restarts
    return max(RESTARTS, config.max_restarts) if config.hang_policy == "restart" else 0


def next_step(policy: str, logs: str, resumes: str) -> str:
    look = f"The stacks are in {logs}."
    if policy == "restart":
        return f"All devices restart now, at most {RESTARTS} times: {resumes} {look}"
    if policy == "stop":
        return f"The run ends now. To continue, press Resume: {resumes} {look}"
    return f"The run was not stopped. {look} If nothing more comes, press Stop twice, then Resume: {resumes}"
