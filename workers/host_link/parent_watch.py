"""A rank never outlives its run host: the kernel's parent-death signal where there is one, asked for at start.

The other half is in `workers.host_link.connection`: a closed socket means the same on every platform.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from core.errors import RankdeckError

_PR_SET_PDEATHSIG = 1
HOST_GONE_EXIT_CODE = 70


class HostGoneError(RankdeckError):
    """The run host ended before this rank had properly begun."""

    title = "The run's host is gone"

    def __init__(self) -> None:
        super().__init__("The process that started this rank has ended.", "Resume the run from its last checkpoint.")


def tie_to_host(host_pid: int) -> None:
    """Asks the kernel to kill this process when its parent ends; call it first thing.

    The parent may have ended before the request was made, so its pid is compared afterwards. Elsewhere than on
    Linux the host's Job Object and the socket do this work.

    Args:
        host_pid: The run host, or 0 when there is none to check against.

    Raises:
        HostGoneError: The parent is not the host any more.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if host_pid and os.getppid() != host_pid:
        raise HostGoneError
