"""Named moments at which a test can have the whole run killed: `RANKDECK_FAULT="manifest_written@2"`.

A run that is killed at any of these and resumed must end in the same weights as one that never was. Without the
variable in the environment `reach` compares one string and does nothing.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections import Counter
from typing import Final

from core.protocol.rank_context import ENV_RANK, RankContext

ENV_FAULT: Final = "RANKDECK_FAULT"

_times: Counter[str] = Counter()


def reach(name: str, number: int | None = None) -> None:
    """Kill the run host and every rank, hard, if the environment names this moment.

    In ranks: `before_claim`, `mid_chunk`, `before_staged`, `after_staged` (number: optimizer step), `weights_write` in
    the middle of a file (number: which file), `before_ballot`, `after_ballot`, `after_synchronisation` (number: round)
    and `mid_synchronisation` (number: how many). In the host: `before_manifest`, `manifest_written`, `ledger_replace`,
    `ledger_replaced` (number: checkpoint), and `replace:<folder>/<file>` between a new file and its name (number: how
    often that has happened). ``"name"`` alone in the environment means the first occurrence, ``"name@number"`` that
    one; a number of None counts them in this process, from 1.
    """
    wanted = _wanted()
    if not wanted:
        return
    if number is None:
        _times[name] += 1
        number = _times[name]
    if wanted in (name, f"{name}@{number}"):
        _kill_run()


@functools.cache
def _wanted() -> str:
    return os.environ.get(ENV_FAULT, "")


def _kill_run() -> None:
    """Kill the host first, so that it cannot write anything in answer, then its other children, then this process."""
    import psutil

    in_rank = ENV_RANK in os.environ
    host = psutil.Process(RankContext.from_env(os.environ).host_pid if in_rank else os.getpid())
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
