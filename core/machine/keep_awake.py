"""Keeps the computer awake while a run trains. The screen may go dark."""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

SYSTEMD_RUNS: Final = Path("/run/systemd/system")
_CONTINUOUS: Final = 0x80000000
_SYSTEM_REQUIRED: Final = 0x00000001
_ENDS_WITHIN_S: Final = 5.0

if sys.platform == "win32":

    @contextlib.contextmanager
    def kept_awake() -> Iterator[None]:
        """Keep the computer awake until the block is left, or the thread that entered it ends.

        https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setthreadexecutionstate
        """
        import ctypes

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.SetThreadExecutionState.argtypes = [ctypes.c_uint32]
        kernel.SetThreadExecutionState.restype = ctypes.c_uint32
        if not kernel.SetThreadExecutionState(_CONTINUOUS | _SYSTEM_REQUIRED):
            log.info("Windows would not promise to stay awake; the computer may fall asleep while it trains")
        try:
            yield
        finally:
            kernel.SetThreadExecutionState(_CONTINUOUS)

else:

    @contextlib.contextmanager
    def kept_awake() -> Iterator[None]:
        """Keep the computer awake until the block is left, or this process ends.

        systemd takes the request from a process of its own, ``systemd-inhibit``, and keeps it while that lives. That
        process reads a pipe whose other end only this process has, so it cannot outlive it.
        """
        holder = _start()
        try:
            yield
        finally:
            if holder is not None:
                _end(holder)

    def _start() -> subprocess.Popen[bytes] | None:
        inhibit = shutil.which("systemd-inhibit") if SYSTEMD_RUNS.is_dir() else None
        if inhibit is None:
            return None
        what = [inhibit, "--what=idle:sleep", "--who=Rankdeck", "--why=A model is being trained", "--mode=block", "cat"]
        silent = subprocess.DEVNULL
        try:
            return subprocess.Popen(what, stdin=subprocess.PIPE, stdout=silent, stderr=silent, start_new_session=True)
        except OSError as error:
            log.info("%s could not be started (%s); the computer may fall asleep while it trains", inhibit, error)
            return None

    def _end(holder: subprocess.Popen[bytes]) -> None:
        if holder.poll() is not None:
            log.info("systemd-inhibit ended with %s: the computer could have fallen asleep", holder.returncode)
        if holder.stdin is not None:
            holder.stdin.close()
        try:
            holder.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            holder.kill()
            holder.wait()
