"""Progress on a window's button in the task bar of Windows, by the COM interface `ITaskbarList3`.

https://learn.microsoft.com/windows/win32/api/shobjidl_core/nn-shobjidl_core-itaskbarlist3
"""

from __future__ import annotations

import ctypes
import logging
import sys
from ctypes import wintypes
from typing import Any, Final
from uuid import UUID

from app.outside.task_progress import TaskProgress, TaskState

assert sys.platform == "win32"  # tells mypy what the rest is for

CLSID_TASKBAR_LIST: Final = UUID("56fdf344-fd6d-11d0-958a-006097c9a090")
IID_TASKBAR_LIST_3: Final = UUID("ea1afb91-9e28-4b86-90e9-9e9f8a5eefaf")
# TBPF_NOPROGRESS, TBPF_INDETERMINATE, TBPF_NORMAL, TBPF_ERROR, TBPF_PAUSED.
FLAGS: Final = {
    TaskState.NONE: 0x0,
    TaskState.BUSY: 0x1,
    TaskState.NORMAL: 0x2,
    TaskState.ERROR: 0x4,
    TaskState.PAUSED: 0x8,
}
_WHOLE: Final = 100
_IN_PROCESS: Final = 0x1  # CLSCTX_INPROC_SERVER
_RELEASE: Final = 2
_INIT: Final = 3
_SET_VALUE: Final = 9
# Places in the interface's table of functions.
_SET_STATE: Final = 10
_log = logging.getLogger(__name__)


class ComError(Exception):
    """A COM call that failed, with its number."""

    def __init__(self, call: str, result: int) -> None:
        super().__init__(f"{call}: 0x{result & 0xFFFFFFFF:08x}")


class _Guid(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 16),)

    @classmethod
    def of(cls, uuid: UUID) -> _Guid:
        return cls.from_buffer_copy(uuid.bytes_le)


class ButtonProgress:
    """The progress of one window's button.

    Qt has initialised COM in the thread of the window.

    Raises:
        ComError: The interface is not there.
    """

    def __init__(self, window_id: int) -> None:
        self._window = wintypes.HWND(window_id)
        self._list = ctypes.c_void_p()
        self._failed = False
        create = ctypes.WinDLL("ole32").CoCreateInstance
        create.restype = ctypes.c_long
        create.argtypes = (ctypes.c_void_p, ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p, ctypes.c_void_p)
        kind, interface = _Guid.of(CLSID_TASKBAR_LIST), _Guid.of(IID_TASKBAR_LIST_3)
        result = create(ctypes.byref(kind), None, _IN_PROCESS, ctypes.byref(interface), ctypes.byref(self._list))
        if result < 0 or not self._list:
            raise ComError("CoCreateInstance", result)
        self._call("HrInit", _INIT)

    def show(self, progress: TaskProgress) -> None:
        """Shows progress; a task bar that stops answering is left alone from then on."""
        if self._failed:
            return
        try:
            self._call("SetProgressState", _SET_STATE, self._window, ctypes.c_int(FLAGS[progress.state]))
            if progress.state not in (TaskState.NONE, TaskState.BUSY):
                done = ctypes.c_ulonglong(round(progress.share * _WHOLE))
                self._call("SetProgressValue", _SET_VALUE, self._window, done, ctypes.c_ulonglong(_WHOLE))
        except (ComError, OSError) as error:
            self._failed = True
            _log.warning("no progress in the task bar any more: %s", error)

    def close(self) -> None:
        """Gives the interface back."""
        if self._list:
            self._function(_RELEASE, ctypes.c_ulong)(self._list)
            self._list = ctypes.c_void_p()

    def _call(self, name: str, place: int, *arguments: Any) -> None:
        types = [type(argument) for argument in arguments]
        result = self._function(place, ctypes.c_long, *types)(self._list, *arguments)
        if result < 0:
            raise ComError(name, result)

    def _function(self, place: int, result: Any, *types: Any) -> Any:
        """A function of the interface, from its table."""
        table = ctypes.cast(self._list, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
        return ctypes.WINFUNCTYPE(result, ctypes.c_void_p, *types)(table[place])
