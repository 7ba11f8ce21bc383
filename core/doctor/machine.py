"""Checks of this computer: memory, loopback, and Windows' page file, long paths and sleep."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from core.doctor.finding import MACHINE, Finding, Fix, Topic
from core.files.long_paths import long_paths_enabled, room_in
from core.formatting import memory_size
from core.launch.commit_charge import CUDA_RANK_BYTES, KEPT_FREE_BYTES
from core.machine.keep_awake import SYSTEMD_RUNS
from core.machine.power import Battery, read_battery, read_power_settings
from core.machine.windows_memory import windows_memory
from core.no_window import NO_WINDOW
from core.program_search import find_program

MEMORY: Final = Topic(
    "memory", "Memory", MACHINE, "Each rank needs about 0.5 GiB of RAM, and on the CPU its model too."
)
LOOPBACK: Final = Topic(
    "loopback", "Loopback", MACHINE, "The window, the run host and the ranks talk over 127.0.0.1, on any free port."
)
PAGE_FILE: Final = Topic(
    "page_file",
    "Page file",
    MACHINE,
    "Windows promises each rank several GiB that it never uses; without a page file starting one fails (error 1455).",
)
LONG_PATHS: Final = Topic(
    "long_paths",
    "Long paths",
    MACHINE,
    "A run's folder holds nested files; Windows may refuse paths over 260 characters.",
)
SLEEP: Final = Topic(
    "sleep", "Sleep", MACHINE, "A computer that sleeps trains nothing. While a run trains, Rankdeck keeps it awake."
)
BATTERY: Final = Topic("battery", "Battery", MACHINE, "GPUs are slower on a battery, and a run stops when it is empty.")
_SOCKET_LIMIT_S: Final = 2.0
_TURNED_OFF: Final = "Rankdeck does not keep it awake: that is turned off in Settings"
_TURN_ON: Final = "Turn on “Keep this PC awake” in Settings."
_LOW_MEMORY_BYTES: Final = 2 << 30
_LOW_PAGE_FILE_BYTES: Final = 8 << 30
_LOW_COMMIT_BYTES: Final = 4 << 30


def check_memory() -> Finding:
    """How much memory is free."""
    figures = psutil.virtual_memory()
    text = f"{memory_size(figures.available)} of {memory_size(figures.total)} free"
    if figures.available < _LOW_MEMORY_BYTES:
        return MEMORY.warn(text, "Close other programs; each rank needs about 0.5 GiB and its model.")
    return MEMORY.ok(text)


def check_loopback() -> Finding:
    """Whether two programs on this machine can communicate over 127.0.0.1, on a port that the system picks."""
    fix: Fix = "open_firewall" if sys.platform == "win32" else ""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(_SOCKET_LIMIT_S)
            port = server.getsockname()[1]
            with socket.create_connection(server.getsockname(), timeout=_SOCKET_LIMIT_S) as client:
                accepted, _ = server.accept()
                with accepted:
                    client.sendall(b"rankdeck")
                    accepted.settimeout(_SOCKET_LIMIT_S)
                    received = accepted.recv(16)
    except OSError as error:
        step = "Allow Python to connect to 127.0.0.1 in your firewall or security software."
        return LOOPBACK.fail(f"127.0.0.1 does not work: {error}", step, fix)
    if received != b"rankdeck":
        return LOOPBACK.fail("the data was modified in transit", "Check for a proxy or security software.", fix)
    return LOOPBACK.ok(f"127.0.0.1 works; port {port} was free")


def check_page_file(size_bytes: int | None = None) -> Finding:
    """Windows: whether the page file leaves room; every rank that loads CUDA reserves several GiB it never uses.

    Args:
        size_bytes: Its size; None asks Windows.
    """
    counts = windows_memory() if size_bytes is None else None
    if counts is not None:
        size, free = max(0, counts.commit_limit - counts.physical), counts.commit_free
        text = (
            f"{memory_size(size)} of page file; {memory_size(free)} of {memory_size(counts.commit_limit)} "
            f"commit charge free, room for about {max(0, free - KEPT_FREE_BYTES) // CUDA_RANK_BYTES} more ranks on GPUs"
        )
    else:
        size, free = psutil.swap_memory().total if size_bytes is None else size_bytes, _LOW_COMMIT_BYTES
        text = f"{memory_size(size)} of page file"
    if size < _LOW_PAGE_FILE_BYTES or free < _LOW_COMMIT_BYTES:
        step = "Let Windows manage the page file's size: System, Advanced, Performance, Virtual memory."
        return PAGE_FILE.warn(text, step, "open_page_file")
    return PAGE_FILE.ok(text)


def check_long_paths(runs_dir: Path, enabled: bool | None = None) -> Finding:
    """Windows: whether paths over 260 characters work, and if not, whether those of a run are shorter.

    Args:
        runs_dir: The folder of runs.
        enabled: None asks the registry.
    """
    if long_paths_enabled() if enabled is None else enabled:
        return LONG_PATHS.ok("paths over 260 characters work")
    room = room_in(runs_dir, of_runs=True)
    if room >= 0:
        return LONG_PATHS.ok(f"limited to 260 characters; the runs folder could be {room} characters longer")
    step = "Choose a shorter folder for runs, or set LongPathsEnabled to 1 (see Microsoft's page on it)."
    text = f"paths are limited to 260 characters, and that of the runs folder is {-room} characters too long"
    return LONG_PATHS.warn(text, step, "open_long_paths")


def check_battery(battery: Battery | None = None) -> Finding:
    """Whether the machine is plugged in.

    Args:
        battery: None asks the system.
    """
    found = read_battery() if battery is None else battery
    if found is None:
        return BATTERY.ok("no battery")
    if found.is_used:
        return BATTERY.warn(f"in use, {found.percent} % full", "Plug the PC in before you start a run.")
    return BATTERY.ok(f"plugged in, {found.percent} % full")


def check_sleep(ask: Callable[[], str] | None = None) -> Finding:
    """Windows: when the machine goes to sleep. During a run it does not, unless the user sends it there
    (`core.machine.keep_awake`).

    Args:
        ask: Gives powercfg's answer; None runs it.
    """
    try:
        answer = (ask or _ask_powercfg)()
    except (OSError, subprocess.SubprocessError) as error:
        return SLEEP.not_tried(
            f"Windows' powercfg did not answer ({type(error).__name__})", "See Windows' power settings."
        )
    indexes = re.findall(r"0x([0-9a-f]{8})", answer)
    if len(indexes) < 2:
        return SLEEP.not_tried("Windows' powercfg gave no figures", "See Windows' power settings.", "open_sleep")
    seconds = int(indexes[-2], 16)  # the last two are: plugged in, on battery
    if seconds and not read_power_settings().keep_awake:
        return SLEEP.warn(_TURNED_OFF, _TURN_ON, "open_sleep")
    if seconds:
        return SLEEP.ok(f"after {seconds // 60} minutes, but not while a run trains")
    return SLEEP.ok("never, while plugged in")


def check_sleep_on_linux() -> Finding:
    """Linux: whether systemd can be told to keep the machine awake."""
    if not read_power_settings().keep_awake:
        return SLEEP.warn(_TURNED_OFF, _TURN_ON)
    if SYSTEMD_RUNS.is_dir() and shutil.which("systemd-inhibit") is not None:
        return SLEEP.ok("systemd keeps it awake while a run trains")
    step = "Turn off sleep in the system's power settings."
    return SLEEP.not_tried("Rankdeck cannot keep it awake: systemd was not found", step)


def _ask_powercfg() -> str:
    program = find_program("powercfg")
    if program is None:
        raise FileNotFoundError("powercfg")
    command = [program, "/query", "SCHEME_CURRENT", "SUB_SLEEP", "STANDBYIDLE"]
    answer = subprocess.run(
        command, capture_output=True, timeout=5, check=True, stdin=subprocess.DEVNULL, creationflags=NO_WINDOW
    )
    return answer.stdout.decode("ascii", errors="replace")  # words in the console's code page, but figures in ASCII
