"""Checks of this computer: memory, loopback, sleep, Windows' page file, and the folder of runs with its fixes."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

import psutil

from core.client import end_leftovers, find_leftovers
from core.doctor.finding import FOLDERS, MACHINE, Finding, Topic
from core.errors import RankdeckError
from core.files.atomic import explain, explained, write_atomic
from core.formatting import byte_size, memory_size
from core.held_files import read_utf8
from core.launch.commit_charge import CUDA_RANK_BYTES, KEPT_FREE_BYTES
from core.launch.preflight import check_folder
from core.machine.keep_awake import SYSTEMD_RUNS
from core.machine.platform import windows_memory
from core.run_folder.store import RunStore, list_runs

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
RUNS: Final = Topic("runs_folder", "Runs folder", FOLDERS, "Runs write checkpoints here; a full disk stops training.")
WRITING: Final = Topic(
    "writing",
    "Write permission",
    FOLDERS,
    "Each run makes its folder here and replaces files in it; security software may refuse that.",
)
LEFTOVERS: Final = Topic(
    "leftovers", "Leftovers", FOLDERS, "Processes of a run that was killed still hold memory of the devices."
)
_SOCKET_LIMIT_S: Final = 2.0
_LOW_MEMORY_BYTES: Final = 2 << 30
_LOW_PAGE_FILE_BYTES: Final = 8 << 30
_LOW_COMMIT_BYTES: Final = 4 << 30
_LOW_DISK_BYTES: Final = 5 * 10**9


class FixError(RankdeckError):
    title = "The problem could not be fixed"


def check_memory() -> Finding:
    figures = psutil.virtual_memory()
    text = f"{memory_size(figures.available)} of {memory_size(figures.total)} free"
    if figures.available < _LOW_MEMORY_BYTES:
        return MEMORY.warn(text, "Close other programs; each rank needs about 0.5 GiB and its model.")
    return MEMORY.ok(text)


def check_loopback() -> Finding:
    """Exchange data between two sockets on 127.0.0.1, on a port that the system picks."""
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
        return LOOPBACK.fail(f"127.0.0.1 does not work: {error}", step)
    if received != b"rankdeck":
        return LOOPBACK.fail("the data was modified in transit", "Check for a proxy or security software.")
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
        return PAGE_FILE.warn(text, step)
    return PAGE_FILE.ok(text)


def check_sleep() -> Finding:
    if sys.platform == "linux" and (not SYSTEMD_RUNS.is_dir() or shutil.which("systemd-inhibit") is None):
        step = "Turn off sleep in the system's power settings."
        return SLEEP.not_tried("Rankdeck cannot keep it awake: systemd was not found", step)
    return SLEEP.ok("it stays awake while a run trains")


def check_disk(runs_dir: Path) -> Finding:
    try:
        check_folder(runs_dir)
    except RankdeckError as error:
        return RUNS.fail(error.cause, error.next_step, "choose_runs_folder")
    existing = next(path for path in (runs_dir.absolute(), *runs_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{runs_dir}, {byte_size(free)} free"
    if free < _LOW_DISK_BYTES:
        step = "Free some space, or set RANKDECK_HOME to another drive."
        return RUNS.warn(text, step, "choose_runs_folder")
    return RUNS.ok(text)


def check_writing(runs_dir: Path) -> Finding:
    """Write, replace and remove a file in the folder of runs, as a run does."""
    if not runs_dir.is_dir():
        if runs_dir.exists():
            return WRITING.fail(f"{runs_dir} is a file", "Choose another folder.", "choose_runs_folder")
        step = "It is made with the first run, or now."
        return WRITING.not_tried(f"{runs_dir} does not exist yet", step, "create_runs_folder")
    path = runs_dir / f".doctor-{secrets.token_hex(4)}"
    try:
        for text in ("first", "second"):
            write_atomic(path, text)
        if read_utf8(path) != "second":
            return WRITING.fail(f"{runs_dir} keeps an old file where a new one was written", "Choose another folder.")
    except RankdeckError as error:
        return WRITING.fail(error.cause, error.next_step, "choose_runs_folder")
    except OSError as error:
        refusal = explain(error, f"{path} could not be read")
        return WRITING.fail(refusal.cause, refusal.next_step, "choose_runs_folder")
    finally:
        # A drive that cannot be written refuses this too.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return WRITING.ok("files are written, replaced and removed")


def check_leftovers(runs_dir: Path) -> Finding:
    """Look for processes of a run whose host and watcher were killed; ends none."""
    try:
        entries = list_runs(runs_dir)
    except RankdeckError as error:
        return LEFTOVERS.warn(error.cause, error.next_step)
    found = find_leftovers([RunStore(entry.path) for entry in entries])
    if not found:
        return LEFTOVERS.ok("no leftover processes of ended runs")
    runs = ", ".join(f"{folder.name} (pid {', '.join(map(str, pids))})" for folder, pids in found.items())
    step = " ".join(f"Run: rankdeck stop {folder.name}" for folder in found)
    return LEFTOVERS.warn(f"leftover processes of ended runs: {runs}", step, "end_leftovers")


def create_folder(folder: Path) -> str:
    """Make the folder of runs; return a sentence.

    Raises:
        PreflightError: No permission, a drive that is missing, a file in its place.
    """
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    return f"{folder} was made."


def end_all_leftovers(runs_dir: Path) -> str:
    """End processes that killed runs have left behind; return a sentence.

    Raises:
        FixError: Some did not end.
        RankdeckError: A run's folder cannot be locked.
    """
    ended: list[int] = []
    for folder in find_leftovers([RunStore(entry.path) for entry in list_runs(runs_dir)]):
        gone, left = end_leftovers(RunStore(folder))
        ended += gone
        if left:
            pids = ", ".join(map(str, left))
            raise FixError(f"Processes of {folder.name} did not end (pid {pids}).", "End them, or restart the machine.")
    return f"{len(ended)} process{'' if len(ended) == 1 else 'es'} ended."
