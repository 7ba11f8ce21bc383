"""Named moments at which a test can have the whole run killed: `RANKDECK_FAULT="manifest_written@2"`.

A run that is killed at any of these and resumed must end in the same weights as one that never was. Without the
variable in the environment `reach` compares one string and does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from core.protocol import ENV_HOST_PID

ENV_FAULT: Final = "RANKDECK_FAULT"

RANK_POINTS: Final = ("before_claim", "mid_chunk", "weights_write", "before_staged", "after_staged")
HOST_POINTS: Final = ("before_manifest", "manifest_written", "ledger_replace", "ledger_replaced")

_wanted = os.environ.get(ENV_FAULT, "")


def reach(name: str, number: int = -1) -> None:
    """Kills the run host and every rank, hard, if the environment names this moment.

    Args:
        name: One of `RANK_POINTS` or `HOST_POINTS`.
        number: The optimizer step (in a rank) or the generation (in the host); ``"name"`` alone in the environment
            means the first time, ``"name@number"`` that one.
    """
    if _wanted and _wanted in (name, f"{name}@{number}"):
        _kill_run()


def _kill_run() -> None:
    """Kills the host first, so that it cannot write anything in answer, then its other children, then this process."""
    import psutil

    host_pid = int(os.environ.get(ENV_HOST_PID) or os.getpid())
    host = psutil.Process(host_pid)
    ranks = [child for child in host.children(recursive=True) if child.pid != os.getpid()]
    for process in [host, *ranks]:
        if process.pid != os.getpid():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
    if sys.platform == "win32":
        os._exit(137)
    os.kill(os.getpid(), signal.SIGKILL)
