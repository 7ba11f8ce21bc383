"""The platform: operating system, cores and PyTorch build, found without importing torch."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psutil

from core.errors import PreflightError
from core.held_files import read_utf8
from core.machine.packages import installed_version
from core.training_python import training_python

PlatformName = Literal["windows", "linux", "macos"]
_TEXT_CONSTANT: Final = re.compile(r"""^(\w+)(?: *:[^=\n]*)? *= *(["'])([^"'\n]*)\2""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Platform:
    """A machine as `core.launch.plan` sees it.

    Attributes:
        torch_version: As ``torch.__version__``; None when torch is not installed.
        cuda_build: The CUDA version torch was built for ("12.8"); None for other builds.
        physical_cores: Processor cores, hyper-threads not counted.
        deepspeed_version: None where ranks cannot train with DeepSpeed.
        commit_free: Bytes that Windows could still promise to programs when this was made; None on other systems.
        cxx: The C++ compiler that torch.compile would call.
        rocm_build: The ROCm version torch was built for ("7.2.26015-fc0010cf6a"); None for other builds.
    """

    name: PlatformName
    torch_version: str | None
    cuda_build: str | None
    physical_cores: int
    deepspeed_version: str | None = None
    commit_free: int | None = None
    cxx: str | None = None
    rocm_build: str | None = None

    @property
    def is_cpu_only(self) -> bool:
        """A CPU build of torch, which cannot train on a GPU. False where there is no torch to judge by."""
        return self.torch_version is not None and self.cuda_build is None and self.rocm_build is None

    @property
    def has_nccl(self) -> bool:
        """NCCL is part of torch's CUDA builds for Linux, and RCCL, by NCCL's name, of its ROCm builds."""
        return self.name == "linux" and (self.cuda_build is not None or self.rocm_build is not None)

    @property
    def gpu_build(self) -> str | None:
        """The GPUs of this torch build: "13.0" (CUDA), "rocm7.2"; None for a CPU build, empty without torch."""
        if self.rocm_build is not None:
            return f"rocm{'.'.join(self.rocm_build.split('.')[:2])}"
        return "" if self.torch_version is None else self.cuda_build

    @property
    def build(self) -> str:
        """The build as text: "CUDA 13.0", "ROCm 7.2", "the CPU only"."""
        if self.rocm_build is not None:
            return f"ROCm {'.'.join(self.rocm_build.split('.')[:2])}"
        return "the CPU only" if self.cuda_build is None else f"CUDA {self.cuda_build}"


def this_platform() -> Platform:
    name: PlatformName = "windows" if sys.platform == "win32" else "macos" if sys.platform == "darwin" else "linux"
    version, cuda, rocm = _torch_build()
    memory = windows_memory()
    commit_free = None if memory is None else memory.commit_free
    return Platform(name, version, cuda, physical_cores(), deepspeed_version(), commit_free, _cxx(), rocm)


def _cxx() -> str | None:
    """As `torch._inductor.cpp_builder` looks for it, which builds with ``$CXX`` or g++."""
    return shutil.which(os.environ.get("CXX") or "g++")


def deepspeed_version() -> str | None:
    python = training_python()
    if python.find_module("deepspeed") is None:
        return None
    return installed_version("deepspeed", python) or "unknown"  # a folder on the path: it can be imported


def free_port() -> int:
    """A TCP port of 127.0.0.1 that no process listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def physical_cores() -> int:
    """Processor cores that this process may use, hyper-threads not counted; at least 1."""
    physical = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    if sys.platform == "linux":
        physical = min(physical, len(psutil.Process().cpu_affinity()))
    return max(1, physical)


def rendezvous_folder(run_dir: Path) -> Path:
    """A folder whose path torch's file store can open: `run_dir` where possible.

    torch takes the path of a ``file://`` address in bytes: under Windows it must be ASCII (it opens UTF-8 bytes in
    the system's old code page), and ``?`` and ``#`` end it everywhere.

    Raises:
        PreflightError: No such folder is found.
    """
    candidates = [run_dir, Path(tempfile.gettempdir())]
    if sys.platform == "win32":
        candidates = [run_dir, _short_path(run_dir), Path(tempfile.gettempdir()), _short_path(tempfile.gettempdir())]
    for folder in candidates:
        if _is_plain(folder):
            return folder
    raise PreflightError(
        f"PyTorch cannot open a file in {run_dir}: the path has characters that it does not pass on.",
        "Choose a folder for runs whose path has only plain letters, for example with RANKDECK_HOME.",
    )


def _is_plain(folder: Path) -> bool:
    text = str(folder)
    return not set("?#") & set(text) and (sys.platform != "win32" or text.isascii())


if sys.platform == "win32":

    def _short_path(folder: Path | str) -> Path:
        """The 8.3 form of a folder that exists, where the drive keeps one."""
        import ctypes

        buffer = ctypes.create_unicode_buffer(32_768)
        length = ctypes.WinDLL("kernel32").GetShortPathNameW(str(folder), buffer, len(buffer))
        return Path(buffer.value if 0 < length < len(buffer) else folder)


def _torch_build() -> tuple[str | None, str | None, str | None]:
    """Version, CUDA version and ROCm version in torch's own `version.py`."""
    python = training_python()
    version = installed_version("torch", python)
    if version is None:
        return None, None, None
    spec = python.find_module("torch")
    if spec is None or spec.origin is None:
        return None, None, None
    try:
        text = read_utf8(Path(spec.origin).with_name("version.py"))
    except (OSError, UnicodeDecodeError):
        return version, None, None
    # Not by ast: the window asks in a thread, and two parses at a time are a SystemError in CPython 3.11
    # (github.com/python/cpython/issues/106905).
    values = {name: value for name, _, value in _TEXT_CONSTANT.findall(text)}
    return values.get("__version__", version), values.get("cuda"), values.get("hip")


@dataclass(frozen=True, slots=True)
class WindowsMemory:
    """In bytes.

    Attributes:
        commit_limit: Memory and page file.
        commit_free: The part that programs may still be promised.
    """

    physical: int
    commit_limit: int
    commit_free: int


def windows_memory() -> WindowsMemory | None:
    """The counts; None on other systems. Not psutil's swap_memory: it fails where performance counters are off."""
    if sys.platform != "win32":
        return None
    import ctypes

    # MEMORYSTATUSEX: two 32-bit fields (length, load), then seven of 64 bits: memory, of that free, commit limit, …
    status = (ctypes.c_uint64 * 8)()
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    if not ctypes.WinDLL("kernel32", use_last_error=True).GlobalMemoryStatusEx(ctypes.byref(status)):
        raise ctypes.WinError(ctypes.get_last_error())
    return WindowsMemory(int(status[1]), int(status[3]), int(status[4]))
