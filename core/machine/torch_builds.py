"""Choice of the torch build for this machine, and of its source.

PyPI's torch is a CPU build for Windows and a CUDA build (with gigabytes of CUDA libraries) for Linux. The
other builds are on PyTorch's own package index and carry a local version: ``2.13.0+cpu``, ``2.13.0+cu130``.
torch 2.13 is built for CUDA 12.6 (Maxwell to Hopper) and CUDA 13.0 (Turing to Blackwell):
https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.no_window import NO_WINDOW

PYTORCH_INDEX: Final = "https://download.pytorch.org/whl"
ENV_TORCH_INDEX: Final = "RANKDECK_TORCH_INDEX"
CUDA_13_DRIVER: Final = 580
TURING: Final = (7, 5)
_NVIDIA_SMI_LIMIT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class TorchSource:
    """One place to try for torch.

    Attributes:
        requirement: What pip is asked for.
        index: pip's ``--index-url``; None: wherever this machine's pip looks.
        label: Shown while it is tried.
    """

    requirement: str
    index: str | None
    label: str


@dataclass(frozen=True, slots=True)
class NvidiaDriver:
    """What `nvidia-smi` says; None where it does not say.

    Attributes:
        major: 580 of driver 580.65.06.
        lowest_capability: The oldest card's compute capability, (8, 9) for Ada.
    """

    major: int | None = None
    lowest_capability: tuple[int, int] | None = None


def has_nvidia_driver(system: str) -> bool:
    """Whether an NVIDIA driver is installed, judged by files only, so that every start can afford to ask."""
    if system == "win32":
        system_root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        return Path(system_root, "System32", "nvcuda.dll").is_file()
    signs = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so.1")
    return any(Path(sign).exists() for sign in signs)


def read_driver() -> NvidiaDriver:
    """Asks `nvidia-smi`; a driver that does not answer counts as unknown."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return NvidiaDriver()
    query = [program, "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            query, capture_output=True, timeout=_NVIDIA_SMI_LIMIT_S, check=False, encoding="utf-8", errors="replace",
            stdin=subprocess.DEVNULL, creationflags=NO_WINDOW,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return NvidiaDriver()
    return parse_driver(answer.stdout)


def parse_driver(answer: str) -> NvidiaDriver:
    """Reads lines such as ``580.65.06, 8.9``; what is not understood is left out."""
    majors = [int(found) for found in re.findall(r"^\s*(\d+)\.", answer, re.MULTILINE)]
    pairs = re.findall(r",\s*(\d+)\.(\d+)\s*$", answer, re.MULTILINE)
    capabilities = [(int(major), int(minor)) for major, minor in pairs]
    return NvidiaDriver(min(majors, default=None), min(capabilities, default=None))


def cuda_tag(driver: NvidiaDriver) -> str:
    """``cu130``, or ``cu126`` for a driver before 580 or a card before Turing."""
    old_driver = driver.major is not None and driver.major < CUDA_13_DRIVER
    old_card = driver.lowest_capability is not None and driver.lowest_capability < TURING
    return "cu126" if old_driver or old_card else "cu130"


def torch_sources(
    system: str, version: str, driver: NvidiaDriver | None, index: str | None = None, tag: str = ""
) -> tuple[TorchSource, ...]:
    """Places to try, best first.

    Args:
        system: `sys.platform`.
        version: The pinned version, ``2.13.0``.
        driver: The NVIDIA driver, None where there is none.
        index: A package index that the person named (`ENV_TORCH_INDEX`); it is then the only one asked.
        tag: A CUDA build that the person named, "cu126"; empty: the one for the driver.
    """
    plain = f"torch=={version}"
    if index:
        return (TorchSource(plain, index, f"torch {version} from the index in {ENV_TORCH_INDEX}"),)
    if driver is not None or tag:
        tag = tag or cuda_tag(driver or NvidiaDriver())
        build = f"torch {version} for {tag.replace('cu12', 'CUDA 12.').replace('cu13', 'CUDA 13.')}"
        tagged = (
            TorchSource(f"{plain}+{tag}", None, build),
            TorchSource(f"{plain}+{tag}", f"{PYTORCH_INDEX}/{tag}", f"{build} from PyTorch's own index"),
        )
        # PyPI's Windows build has no CUDA: taking it here would silently train on the CPU.
        return tagged if system == "win32" else (*tagged, TorchSource(plain, None, f"torch {version}"))
    if system != "linux":
        return (TorchSource(plain, None, f"torch {version}"),)
    return (
        TorchSource(f"{plain}+cpu", None, f"torch {version} for the CPU"),
        TorchSource(f"{plain}+cpu", f"{PYTORCH_INDEX}/cpu", f"torch {version} for the CPU from PyTorch's own index"),
        TorchSource(plain, None, f"torch {version} with its CUDA libraries (several GB: no CPU build was found)"),
    )


def pinned_torch_version(constraints: str) -> str:
    """The version in the ``torch==`` line of constraints.txt.

    Raises:
        ValueError: There is no such line.
    """
    found = re.search(r"^torch==([^\s+;]+)", constraints, re.MULTILINE)
    if found is None:
        raise ValueError("constraints.txt has no torch== line")
    return found.group(1)
