"""Checks of this computer: memory, loopback, sleep, and Windows' page file."""

from __future__ import annotations

import shutil
import socket
import sys
from typing import Final

import psutil

from core.doctor.finding import MACHINE, Finding, Fix, Topic
from core.formatting import memory_size
from core.launch.commit_charge import CUDA_RANK_BYTES, KEPT_FREE_BYTES
from core.machine.keep_awake import SYSTEMD_RUNS, read_power_settings
from core.machine.platform import windows_memory

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
SLEEP: Final = Topic(
    "sleep", "Sleep", MACHINE, "A computer that sleeps trains nothing. While a run trains, Rankdeck keeps it awake."
)
_SOCKET_LIMIT_S: Final = 2.0
_TURN_ON: Final = "Turn on “Keep this PC awake” in Settings."
_LOW_MEMORY_BYTES: Final = 2 << 30
_LOW_PAGE_FILE_BYTES: Final = 8 << 30
_LOW_COMMIT_BYTES: Final = 4 << 30


def check_memory() -> Finding:
    figures = psutil.virtual_memory()
    text = f"{memory_size(figures.available)} of {memory_size(figures.total)} free"
    if figures.available < _LOW_MEMORY_BYTES:
        return MEMORY.warn(text, "Close other programs; each rank needs about 0.5 GiB and its model.")
    return MEMORY.ok(text)


def check_loopback() -> Finding:
    """Exchange data between two sockets on 127.0.0.1, on a port that the system picks."""
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
    """Windows: check the room for commit charge; every rank that loads CUDA reserves several GiB it never uses."""
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


def check_sleep() -> Finding:
    if not read_power_settings().keep_awake:
        return SLEEP.warn("Rankdeck does not keep it awake: that is turned off in Settings", _TURN_ON)
    if sys.platform == "linux" and (not SYSTEMD_RUNS.is_dir() or shutil.which("systemd-inhibit") is None):
        step = "Turn off sleep in the system's power settings."
        return SLEEP.not_tried("Rankdeck cannot keep it awake: systemd was not found", step)
    return SLEEP.ok("it stays awake while a run trains")
