"""Hang policy: what a run does about ranks that hang, by its setting `hang_policy`. Pure."""

from __future__ import annotations

from typing import Final

from core.config import RunConfig
from core.host.failures import RankFailure

RESTARTS: Final = 3
"""What still hangs after three restarts does so for a reason that lies in the run."""


def restart_limit(config: RunConfig, root: RankFailure | None) -> int:
    """How often all ranks may be restarted, counted with the restarts before, after this failure."""
    if root is None or not root.hung:
        return config.max_restarts
    return max(RESTARTS, config.max_restarts) if config.hang_policy == "restart" else 0


def next_step(policy: str, logs: str, resumes: str) -> str:
    """What happens now and what a person can do, as sentences.

    Args:
        policy: The setting.
        logs: The logs that hold the stacks.
        resumes: What a resumed or restarted run does.
    """
    look = f"The stacks are in {logs}."
    if policy == "restart":
        return f"All devices restart now, at most {RESTARTS} times: {resumes} {look}"
    if policy == "stop":
        return f"The run ends now. To continue, press Resume: {resumes} {look}"
    return f"The run was not stopped. {look} If nothing more comes, press Stop twice, then Resume: {resumes}"
