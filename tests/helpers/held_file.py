"""Held files: what a virus scanner or a backup does to a file on Windows, with a real handle."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

WINDOWS_ONLY: Final = pytest.mark.skipif(sys.platform != "win32", reason="only Windows refuses files that are held")

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _GENERIC_READ: Final = 0x80000000
    _OPEN_EXISTING: Final = 3
    _INVALID: Final = ctypes.c_void_p(-1).value

    @contextmanager
    def held(path: Path) -> Iterator[None]:
        """Holds the file open without sharing it until the block is left."""
        handle = _open(path)
        try:
            yield
        finally:
            _kernel().CloseHandle(handle)

    def hold_for(path: Path, seconds: float) -> threading.Timer:
        """As `held`, from now on for some time; the timer that lets go is returned, to be joined."""
        handle = _open(path)
        timer = threading.Timer(seconds, lambda: _kernel().CloseHandle(handle))
        timer.start()
        return timer

    def _open(path: Path) -> int:
        handle = _kernel().CreateFileW(str(path), _GENERIC_READ, 0, None, _OPEN_EXISTING, 0, None)
        if handle in (None, _INVALID):
            raise ctypes.WinError(ctypes.get_last_error())
        return int(handle)

    def _kernel() -> ctypes.WinDLL:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateFileW.argtypes = (
            wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD, wintypes.DWORD,
            wintypes.HANDLE,
        )  # fmt: skip
        kernel.CreateFileW.restype = wintypes.HANDLE
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        return kernel

else:

    @contextmanager
    def held(path: Path) -> Iterator[None]:
        """Not on this system; see `WINDOWS_ONLY`."""
        raise NotImplementedError(path)

    def hold_for(path: Path, seconds: float) -> threading.Timer:
        """Not on this system; see `WINDOWS_ONLY`."""
        raise NotImplementedError(path, seconds)
