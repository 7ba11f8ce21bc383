"""Windows' performance counters of GPUs, read by `pdh.dll`. Imported on Windows only.

https://learn.microsoft.com/windows/win32/api/pdh/
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes import wintypes
from typing import Final

from core.machine.devices.gpu_counters import COUNTERS, ProcessUse, Readings, parse_use

assert sys.platform == "win32"  # tells mypy what the rest is for

_LARGE: Final = 0x400
_MORE_DATA: Final = 0x800007D2
# PDH_CSTATUS_VALID_DATA, PDH_CSTATUS_NEW_DATA.
_VALID: Final = (0, 1)


class _Item(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE_ITEM_W."""

    _fields_ = (("name", wintypes.LPWSTR), ("status", wintypes.DWORD), ("value", ctypes.c_longlong))


class PdhCounters:
    """A query that stays open: opening one takes 0.2 s, reading it 0.1 ms. Used by one thread at a time.

    Raises:
        OSError: There is no `pdh.dll`, or this Windows has none of the counters (before Windows 10 1709).
    """

    def __init__(self) -> None:
        self._pdh = ctypes.WinDLL("pdh")
        handle, text = wintypes.HANDLE, wintypes.LPCWSTR
        self._pdh.PdhOpenQueryW.argtypes = (text, ctypes.c_size_t, ctypes.POINTER(handle))
        # The English names, whatever the language of this Windows.
        self._pdh.PdhAddEnglishCounterW.argtypes = (handle, text, ctypes.c_size_t, ctypes.POINTER(handle))
        self._pdh.PdhCollectQueryData.argtypes = (handle,)
        self._pdh.PdhGetFormattedCounterArrayW.argtypes = (
            handle, wintypes.DWORD, ctypes.POINTER(wintypes.DWORD), ctypes.POINTER(wintypes.DWORD), ctypes.c_void_p,
        )  # fmt: skip
        self._pdh.PdhCloseQuery.argtypes = (handle,)
        self._query = handle()
        self._checked(self._pdh.PdhOpenQueryW(None, 0, ctypes.byref(self._query)))
        self._handles: dict[str, wintypes.HANDLE] = {}
        try:
            for counter in COUNTERS:
                found = handle()
                self._checked(self._pdh.PdhAddEnglishCounterW(self._query, counter, 0, ctypes.byref(found)))
                self._handles[counter] = found
        except OSError:
            self.close()
            raise

    def read(self) -> Readings:
        if self._pdh.PdhCollectQueryData(self._query):
            return {}  # PDH_NO_DATA: no process uses a GPU
        return {counter: dict(self._values(counter)) for counter in COUNTERS}

    def close(self) -> None:
        if self._query:
            self._pdh.PdhCloseQuery(self._query)
            self._query = wintypes.HANDLE()

    def _values(self, counter: str) -> Iterator[tuple[str, float]]:
        size, count = wintypes.DWORD(0), wintypes.DWORD(0)
        handle, buffer = self._handles[counter], None
        for _ in range(4):  # processes come and go between the two calls
            code = self._array(handle, size, count, buffer)
            if code != _MORE_DATA:
                break
            buffer = ctypes.create_string_buffer(size.value)
        if code or buffer is None:
            return
        for item in (_Item * count.value).from_buffer(buffer):
            if item.status in _VALID and item.name:
                yield item.name, float(item.value)

    def _array(
        self,
        handle: wintypes.HANDLE,
        size: wintypes.DWORD,
        count: wintypes.DWORD,
        buffer: ctypes.Array[ctypes.c_char] | None,
    ) -> int:
        array = self._pdh.PdhGetFormattedCounterArrayW
        return int(array(handle, _LARGE, ctypes.byref(size), ctypes.byref(count), buffer)) & 0xFFFFFFFF

    @staticmethod
    def _checked(code: int) -> None:
        if code:
            raise OSError(f"Windows' GPU counters cannot be read (PDH 0x{code & 0xFFFFFFFF:08X})")


class ProcessGpuUse:
    """Windows' figures of processes on GPUs. Used by one thread."""

    def __init__(self) -> None:
        self._counters: PdhCounters | None = None
        self._has_none = False

    def read(self) -> dict[int, list[ProcessUse]]:
        if self._counters is None and not self._has_none:
            try:
                self._counters = PdhCounters()
            except (OSError, AttributeError):  # a pdh.dll without one of the functions
                self._has_none = True
        return {} if self._counters is None else parse_use(self._counters.read())
