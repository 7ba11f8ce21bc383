"""Checks of `rankdeck doctor`. Each answers in bounded time and gives a next step."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psutil

from core.client import find_leftovers
from core.errors import RankdeckError
from core.formatting import byte_size, memory_size
from core.launch.mode import check_cuda, check_gloo
from core.launch.preflight import check_folder, check_torch
from core.machine.cuda_torch import GOOD_TORCH
from core.machine.devices.monitor import DeviceMonitor
from core.machine.packages import installed_requires, installed_version
from core.machine.platform import Platform
from core.machine.windows_memory import windows_memory
from core.recipes.catalog import find_recipes
from core.run_folder.store import RunStore, list_runs

Level = Literal["ok", "warn", "fail"]
OLDEST_PYTHON: Final = (3, 11)
_SOCKET_LIMIT_S: Final = 2.0
_LOW_DISK_BYTES: Final = 5 * 10**9
_LOW_MEMORY_BYTES: Final = 2 << 30
_LOW_PAGE_FILE_BYTES: Final = 8 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: what was checked, the result, and what to do about a problem."""

    name: str
    level: Level
    text: str
    next_step: str = ""


def examine(runs_dir: Path, platform: Platform) -> Iterator[Finding]:
    """Every check, one after another."""
    with DeviceMonitor() as monitor:
        checks: list[tuple[str, Callable[[], Finding]]] = [
            ("Python", check_python),
            ("PyTorch", lambda: torch_build(platform)),
            ("Several devices", lambda: gloo(platform)),
            ("ZeRO", lambda: zero_engine(platform)),
            ("torchvision", lambda: torchvision(platform)),
            ("Window", pyside),
            ("GPUs", lambda: gpus(monitor, platform)),
            ("Memory", memory),
            ("Runs folder", lambda: disk(runs_dir)),
            ("Loopback", loopback),
            ("Recipes", recipes),
            ("Leftovers", lambda: leftovers(runs_dir)),
        ]
        if sys.platform == "win32":
            checks += [("Page file", page_file), ("Long paths", long_paths), ("Sleep", sleep_setting)]
        for name, check in checks:
            yield answered(name, check)


def answered(name: str, check: Callable[[], Finding]) -> Finding:
    """A check's finding; a check that fails is a finding too, and the others continue."""
    try:
        return check()
    except (OSError, RuntimeError, ValueError) as error:
        return Finding(name, "warn", f"could not be checked ({error})", "The other checks are valid.")


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether this Python is new enough."""
    text = f"Python {'.'.join(map(str, version))} ({sys.executable})"
    if version[:2] < OLDEST_PYTHON:
        return Finding("Python", "fail", text, "Install Python 3.11 or newer.")
    return Finding("Python", "ok", text)


def torch_build(platform: Platform) -> Finding:
    """Whether there is a usable PyTorch; it is not imported."""
    try:
        check_torch(platform)
    except RankdeckError as error:
        return Finding("PyTorch", "fail", error.cause, error.next_step)
    build = f"for CUDA {platform.cuda_build}" if platform.cuda_build else "CPU build"
    return Finding("PyTorch", "ok", f"torch {platform.torch_version}, {build}")


def gloo(platform: Platform) -> Finding:
    """Whether this PyTorch can connect several devices."""
    try:
        check_gloo(platform)
    except RankdeckError as error:
        return Finding("Several devices", "warn", error.cause, error.next_step)
    if platform.torch_version is None:
        return Finding("Several devices", "warn", "not known without PyTorch", f"Install torch {GOOD_TORCH}.")
    return Finding("Several devices", "ok", "NCCL and gloo" if platform.has_nccl else "gloo")


def zero_engine(platform: Platform) -> Finding:
    """The engine that ZeRO uses by default."""
    version = platform.deepspeed_version
    text = "PyTorch's engine (DeepSpeed is not installed)" if version is None else f"DeepSpeed {version}"
    return Finding("ZeRO", "ok", text)


def torchvision(platform: Platform) -> Finding:
    """Whether torchvision was built for another torch: then `import transformers` fails."""
    version = installed_version("torchvision")
    if version is None or platform.torch_version is None:
        return Finding("torchvision", "ok", "not installed (optional)")
    wanted = next((found[1] for line in installed_requires("torchvision") if (found := _EXACT.match(line))), None)
    public, _, build = platform.torch_version.partition("+")
    other_build = build == "cpu" and "+" not in version and sys.platform != "darwin"
    if other_build or (wanted is not None and wanted.partition("+")[0] != public):
        return Finding(
            "torchvision",
            "warn",
            f"torchvision {version} doesn't match torch {platform.torch_version}; importing transformers may fail",
            "Remove it (pip uninstall torchvision) or install the matching version from the same index as torch.",
        )
    return Finding("torchvision", "ok", f"torchvision {version}")


_EXACT: Final = re.compile(r"torch\s*\(?==\s*([\w.+]+)")


def pyside(python: tuple[int, ...] = sys.version_info[:2]) -> Finding:
    """Whether Qt is installed, and not the version that crashes on Python 3.11."""
    version = installed_version("PySide6-Essentials") or installed_version("PySide6")
    if version is None:
        return Finding("Window", "warn", "PySide6 is not installed", "Install it: pip install PySide6-Essentials")
    if version == "6.12.0" and python == (3, 11):
        return Finding(
            "Window", "fail", "PySide6 6.12.0 crashes after a while on Python 3.11",
            "Install another version: pip install PySide6-Essentials==6.11.3",
        )  # fmt: skip
    return Finding("Window", "ok", f"PySide6 {version}")


def gpus(monitor: DeviceMonitor, platform: Platform) -> Finding:
    """The driver's GPUs, and whether this PyTorch can use them."""
    listed = [device for device in monitor.devices() if device.kind == "cuda"]
    found = [device for device in listed if not device.hidden_by]
    hidden = f"{listed[-1].hidden_by} hides {len(listed) - len(found)} of {len(listed)}." if found != listed else ""
    if not found:
        why = " ".join(part for part in ("none; training uses CPU devices.", hidden, monitor.problem) if part)
        return Finding("GPUs", "ok", why)
    text = f"{', '.join(device.name for device in found)}; driver {monitor.driver or 'not known'}"
    text = f"{text}. {hidden}" if hidden else text
    try:
        check_cuda(found, platform)
    except RankdeckError as error:
        return Finding("GPUs", "warn", f"{text}. {error.cause}", error.next_step)
    if monitor.problem:
        return Finding("GPUs", "warn", f"{text}. {monitor.problem}", "List the devices: rankdeck devices")
    return Finding("GPUs", "ok", text)


def memory() -> Finding:
    """How much memory is free."""
    figures = psutil.virtual_memory()
    text = f"{memory_size(figures.available)} of {memory_size(figures.total)} free"
    if figures.available < _LOW_MEMORY_BYTES:
        return Finding("Memory", "warn", text, "Close other programs; each rank needs about 0.5 GiB and its model.")
    return Finding("Memory", "ok", text)


def disk(runs_dir: Path) -> Finding:
    """Whether runs can be written, and how much space there is."""
    try:
        check_folder(runs_dir)
    except RankdeckError as error:
        return Finding("Runs folder", "fail", error.cause, error.next_step)
    existing = next(path for path in (runs_dir.absolute(), *runs_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{runs_dir}, {byte_size(free)} free"
    if free < _LOW_DISK_BYTES:
        return Finding("Runs folder", "warn", text, "Free some space, or set RANKDECK_HOME to another drive.")
    return Finding("Runs folder", "ok", text)


def loopback() -> Finding:
    """Whether two programs on this machine can communicate over 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(_SOCKET_LIMIT_S)
            with socket.create_connection(server.getsockname(), timeout=_SOCKET_LIMIT_S) as client:
                accepted, _ = server.accept()
                with accepted:
                    client.sendall(b"rankdeck")
                    accepted.settimeout(_SOCKET_LIMIT_S)
                    received = accepted.recv(16)
    except OSError as error:
        step = "Allow Python to connect to 127.0.0.1 in your firewall or security software."
        return Finding("Loopback", "fail", f"127.0.0.1 does not work: {error}", step)
    if received != b"rankdeck":
        return Finding(
            "Loopback", "fail", "the data was modified in transit", "Check for a proxy or security software."
        )
    return Finding("Loopback", "ok", "127.0.0.1 works")


def recipes() -> Finding:
    """Whether every recipe can be used."""
    found = find_recipes()
    broken = [f"{recipe.name}: {recipe.problem}" for recipe in found if recipe.problem]
    if broken:
        return Finding("Recipes", "warn", "; ".join(broken), "Correct their recipe.toml.")
    return Finding("Recipes", "ok", ", ".join(recipe.name for recipe in found))


def leftovers(runs_dir: Path) -> Finding:
    """Whether a run whose host and watcher were killed has left processes behind; ends none."""
    try:
        entries = list_runs(runs_dir)
    except RankdeckError as error:
        return Finding("Leftovers", "warn", error.cause, error.next_step)
    found = find_leftovers([RunStore(entry.path) for entry in entries])
    if not found:
        return Finding("Leftovers", "ok", "no leftover processes of ended runs")
    runs = ", ".join(f"{folder.name} (pid {', '.join(map(str, pids))})" for folder, pids in found.items())
    step = " ".join(f"Run: rankdeck stop {folder.name}" for folder in found)
    return Finding("Leftovers", "warn", f"leftover processes of ended runs: {runs}", step)


def page_file(size_bytes: int | None = None) -> Finding:
    """Windows: whether the page file leaves room; every rank that loads CUDA reserves several GiB it never uses.

    Args:
        size_bytes: Its size; None asks Windows.
    """
    size = _page_file_bytes() if size_bytes is None else size_bytes
    text = f"{memory_size(size)} of page file"
    if size < _LOW_PAGE_FILE_BYTES:
        step = "Let Windows manage the page file's size: System, Advanced, Performance, Virtual memory."
        return Finding("Page file", "warn", text, step)
    return Finding("Page file", "ok", text)


def _page_file_bytes() -> int:
    memory = windows_memory()
    return psutil.swap_memory().total if memory is None else max(0, memory.commit_limit - memory.physical)


def long_paths() -> Finding:
    """Windows: whether paths over 260 characters work."""
    if _long_paths_enabled():
        return Finding("Long paths", "ok", "paths over 260 characters work")
    step = "Keep the runs folder's path short, or set LongPathsEnabled to 1 (see Microsoft's page on it)."
    return Finding("Long paths", "warn", "paths are limited to 260 characters", step)


def _long_paths_enabled() -> bool:
    if sys.platform != "win32":
        return True
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0] == 1)
    except OSError:
        return False  # the value is not there: the old limit holds


def sleep_setting(ask: Callable[[], str] | None = None) -> Finding:
    """Windows: when the machine goes to sleep. During a run it does not, unless the user sends it there
    (`core.machine.keep_awake`).
    """
    try:
        answer = (ask or _ask_powercfg)()
    except (OSError, subprocess.SubprocessError):
        return Finding("Sleep", "ok", "could not be read")
    indexes = re.findall(r"0x([0-9a-f]{8})", answer)
    if len(indexes) < 2:
        return Finding("Sleep", "ok", "could not be read")
    seconds = int(indexes[-2], 16)  # the last two are: plugged in, on battery
    if seconds:
        return Finding("Sleep", "ok", f"after {seconds // 60} minutes, but not while a run trains")
    return Finding("Sleep", "ok", "never, while plugged in")


def _ask_powercfg() -> str:
    command = ["powercfg", "/query", "SCHEME_CURRENT", "SUB_SLEEP", "STANDBYIDLE"]
    return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True, errors="replace").stdout
