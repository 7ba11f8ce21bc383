"""Process rules of Windows: one Job Object with kill-on-close."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from ctypes import wintypes
from pathlib import Path
from typing import Final

import psutil

from core.processes.identity import ProcessId, identify, is_alive
from core.program_search import NO_WINDOW

assert sys.platform == "win32"  # tells mypy what the rest is for

# DBG_TERMINATE_PROCESS, which Windows itself uses when a person logs off.
ENDED_BY_HOST: Final = 0x40010004
CREATE_SUSPENDED: Final = 0x00000004

_EXTENDED_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_PROCESS_ID_LIST: Final = 3  # JobObjectBasicProcessIdList
_KILL_ON_JOB_CLOSE: Final = 0x2000
_NO_CRASH_DIALOGS: Final = 0x0400  # JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
_SET_QUOTA_AND_TERMINATE: Final = 0x0100 | 0x0001
_MORE_DATA: Final = 234  # ERROR_MORE_DATA


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
        ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_ulonglong * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


def _kernel32() -> ctypes.WinDLL:
    dll = ctypes.WinDLL("kernel32", use_last_error=True)
    handle, dword, pointer = wintypes.HANDLE, wintypes.DWORD, ctypes.c_void_p
    dll.CreateJobObjectW.argtypes = (pointer, wintypes.LPCWSTR)
    dll.CreateJobObjectW.restype = handle
    dll.SetInformationJobObject.argtypes = (handle, ctypes.c_int, pointer, dword)
    dll.QueryInformationJobObject.argtypes = (handle, ctypes.c_int, pointer, dword, pointer)
    dll.AssignProcessToJobObject.argtypes = (handle, handle)
    dll.TerminateJobObject.argtypes = (handle, wintypes.UINT)
    dll.OpenProcess.argtypes = (dword, wintypes.BOOL, dword)
    dll.OpenProcess.restype = handle
    dll.CloseHandle.argtypes = (handle,)
    return dll


class JobObjectRules:
    """Starts and ends the processes of a `core.processes.tree.ProcessTree` by a Job Object.

    When its last handle is closed, which the system does for us however this process ends, the job ends every
    process in it. A process is in it from before its first instruction, and so are its children.
    """

    def __init__(self, _mark: str) -> None:
        self._api = _kernel32()
        self._job: int | None = self._checked(self._api.CreateJobObjectW(None, None))
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE | _NO_CRASH_DIALOGS
        size = ctypes.sizeof(limits)
        self._checked(self._api.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), size))

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        """As `SessionRules.start`. With redirected output `subprocess` lets a child inherit those handles only."""
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            cwd=cwd,
            env=dict(env),
            creationflags=CREATE_SUSPENDED | NO_WINDOW,
        )
        try:
            self._assign(process.pid)
            psutil.Process(process.pid).resume()
        except (OSError, psutil.Error) as error:
            process.kill()
            process.wait()
            if isinstance(error, psutil.Error):
                raise OSError(f"the new process could not be resumed ({error})") from error
            raise
        return process

    def members(self) -> list[ProcessId]:
        if self._job is None:
            return []
        found = (identify(pid) for pid in self._pids(64))
        return [process for process in found if process is not None and is_alive(process)]

    def reaped(self, pid: int) -> None:
        """Does nothing: the job keeps count by itself."""

    def terminate(self, victims: Collection[ProcessId]) -> None:
        """Windows has no way to ask."""
        self.kill(victims)

    def kill(self, victims: Collection[ProcessId]) -> None:
        """End the processes; they are all processes of the job."""
        if self._job is not None and victims:
            self._checked(self._api.TerminateJobObject(self._job, ENDED_BY_HOST))

    def close(self) -> None:
        """Close the job, which ends the rest."""
        if self._job is not None:
            self._api.CloseHandle(self._job)
            self._job = None

    def _assign(self, pid: int) -> None:
        # `subprocess` holds a handle of the process, so the pid cannot belong to another one yet.
        handle = self._checked(self._api.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid))
        try:
            self._checked(self._api.AssignProcessToJobObject(self._job, handle))
        finally:
            self._api.CloseHandle(handle)

    def _pids(self, room: int) -> list[int]:
        class ProcessIdList(ctypes.Structure):
            _fields_ = (
                ("NumberOfAssignedProcesses", wintypes.DWORD),
                ("NumberOfProcessIdsInList", wintypes.DWORD),
                ("ProcessIdList", ctypes.c_size_t * room),
            )

        ids = ProcessIdList()
        size = ctypes.sizeof(ids)
        if not self._api.QueryInformationJobObject(self._job, _PROCESS_ID_LIST, ctypes.byref(ids), size, None):
            if ctypes.get_last_error() == _MORE_DATA and room < 1 << 20:
                return self._pids(room * 4)
            raise ctypes.WinError(ctypes.get_last_error())
        return [int(pid) for pid in ids.ProcessIdList[: ids.NumberOfProcessIdsInList]]

    @staticmethod
    def _checked(result: int | None) -> int:
        if not result:
            raise ctypes.WinError(ctypes.get_last_error())
        return result
