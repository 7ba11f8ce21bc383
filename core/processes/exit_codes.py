"""Exit codes of processes, as text that a person can act on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from typing import Final

_SIGNALS: Final[Mapping[str, str]] = {
    "SIGKILL": "killed (often by the system's out-of-memory killer)",
    "SIGSEGV": "crashed: segmentation fault",
    "SIGABRT": "aborted itself (a check in native code failed; its log says which)",
    "SIGBUS": "crashed: memory that was promised is not there (bus error; often shared memory or a disk is full)",
    "SIGFPE": "crashed: impossible arithmetic in native code",
    "SIGILL": "crashed: an instruction this processor does not have (built for another processor)",
    "SIGTERM": "ended on request",
    "SIGINT": "interrupted (Ctrl+C)",
    "SIGHUP": "ended because its terminal was closed",
    "SIGXCPU": "ended: its limit of processor time is used up",
    "SIGXFSZ": "ended: a file grew over its limit",
}

# Windows ends a process that crashes with the NTSTATUS of the exception as its exit code (ntstatus.h).
_NTSTATUS: Final[Mapping[int, str]] = {
    0x40010004: "ended by its run host, or because the person logged off",
    0xC0000005: "crashed: access violation",
    0xC0000006: "crashed: a file it had mapped could not be read (disk or network drive)",
    0xC0000017: "out of memory",
    0xC000001D: "crashed: an instruction this processor does not have (built for another processor)",
    0xC0000022: "refused: access denied (often by security software)",
    0xC000007B: "did not start: a DLL is damaged, or built for another kind of processor",
    0xC000009A: "out of memory: Windows has no resources left (page file or kernel memory)",
    0xC00000FD: "crashed: its stack is used up (endless recursion in native code?)",
    0xC000012D: "out of memory: the page file is full",
    0xC0000135: "did not start: a DLL is missing",
    0xC0000139: "did not start: a DLL is of the wrong version",
    0xC000013A: "interrupted (Ctrl+C, or its console was closed)",
    0xC0000142: "did not start: a DLL failed to initialise (often too little memory or page file)",
    0xC0000374: "crashed: its heap is corrupt",
    0xC0000409: "aborted itself (a check in native code failed; its log says which)",
    0xC0000428: "did not start: a file's signature was refused",
    0xC0000602: "aborted itself (a check in native code failed; its log says which)",
    0xC06D007E: "crashed: a DLL that it loads when needed is missing",
    0xC06D007F: "crashed: a DLL that it loads when needed lacks a function",
    0xCFFFFFFF: "ended by Windows or a person because it did not respond",
    0xE06D7363: "crashed: an uncaught C++ exception",
}

_NTSTATUS_ERROR: Final = 0xC0000000
_MEMORY: Final = "Let Windows manage the page file's size (rankdeck doctor says where), or train on fewer devices."
_DLL: Final = (
    "Repair the training environment, install Microsoft's Visual C++ Redistributable (x64), then run: rankdeck doctor"
)
_NATIVE: Final = "Update the NVIDIA driver, and check the environment: rankdeck doctor"
# What is not here says nothing of its remedy: its log may.
_NEXT_STEPS: Final[Mapping[int, str]] = {
    **dict.fromkeys((0xC0000017, 0xC000009A, 0xC000012D, 0xC0000142), _MEMORY),
    **dict.fromkeys((0xC000007B, 0xC0000135, 0xC0000139, 0xC06D007E, 0xC06D007F), _DLL),
    **dict.fromkeys((0xC0000005, 0xC0000374, 0xC0000409, 0xC0000602), _NATIVE),
    0xC0000006: "Check the drive, or copy the dataset to a local one.",
    0xC000001D: "Install a build of PyTorch for this processor.",
    0xC0000022: "Allow Python in your security software.",
    0xC0000428: "Allow Python in your security software, or in Windows' policies for applications.",
}


def describe_exit(returncode: int) -> str:
    """`returncode` of a process as text: signals, NTSTATUS codes and plain exit codes.

    Args:
        returncode: As `subprocess` gives it: negative for a signal, 0 to 2**32 - 1 for a code.
    """
    if returncode == 0:
        return "exited normally"
    if -65 < returncode < 0:
        return _describe_signal(-returncode)
    # Some callers see the 32 bits of Windows with a sign.
    code = returncode & 0xFFFFFFFF
    if code in _NTSTATUS:
        return f"{_NTSTATUS[code]} (0x{code:08X})"
    if code > 0xFFFF:
        return f"ended with exit code 0x{code:08X}"
    if code == 127:
        return "ended with exit code 127 (the program was not found or could not be started)"
    if 128 < code <= 128 + 64:
        return f"ended with exit code {code} (as shells report: {_describe_signal(code - 128)})"
    return f"ended with exit code {code}"


def exit_advice(returncode: int) -> str:
    """Advice on an exit code; empty where the code alone does not tell. Arguments as for `describe_exit`."""
    return _NEXT_STEPS.get(returncode & 0xFFFFFFFF, "") if not -65 < returncode <= 0 else ""


def is_crash(returncode: int) -> bool:
    """Whether native code crashed, or a signal ended it; never of an exception in Python."""
    return returncode < 0 or returncode >= _NTSTATUS_ERROR


def ended_by_force(returncode: int, platform: str = sys.platform) -> bool:
    """Whether a process was ended from outside, or by a crash in native code, rather than by itself.

    Windows keeps no signals: `TerminateProcess` leaves the code that its caller chose, which is 1 from Task Manager,
    ``taskkill /F`` and `subprocess`, and the signal's number from `os.kill` and psutil.
    """
    if platform != "win32":
        return returncode < 0
    return returncode in (1, signal.SIGTERM, 9) or (returncode & 0xFFFFFFFF) >= _NTSTATUS_ERROR


def _describe_signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:  # real-time signals, and on Windows nearly all
        name = {9: "SIGKILL", 6: "SIGABRT", 7: "SIGBUS", 1: "SIGHUP"}.get(number, f"signal {number}")
    return f"{_SIGNALS.get(name, 'ended by a signal')} ({name})"
