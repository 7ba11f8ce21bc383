"""Choice of the torch build for this machine, and of its source.

PyPI's torch is a CPU build for Windows and a CUDA build (with gigabytes of CUDA libraries) for Linux. The
other builds are on PyTorch's own package index and carry a local version: ``2.13.0+cpu``, ``2.13.0+cu130``.
torch 2.13 is built for CUDA 12.6 (Maxwell to Hopper) and CUDA 13.0 (Turing to Blackwell):
https://github.com/pytorch/pytorch/blob/main/RELEASE.md
Only the standard library is imported here: setting up a checkout needs it before anything is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.program_search import find_program, run_hidden

PYTORCH_INDEX: Final = "https://download.pytorch.org/whl"
ENV_TORCH_INDEX: Final = "RANKDECK_TORCH_INDEX"
# torch 2.13's build for AMD GPUs, for Linux: https://github.com/pytorch/pytorch/releases/tag/v2.13.0
ROCM_TAG: Final = "rocm7.2"
CUDA_13_DRIVER: Final = 580
# Every CUDA 12 runs on the driver of the first: https://docs.nvidia.com/deploy/cuda-compatibility/
CUDA_12_DRIVER: Final = {"win32": 528}
_CUDA_12_DRIVER: Final = 525
MAXWELL: Final = (5, 0)
TURING: Final = (7, 5)
HOPPER: Final = (9, 0)
_NVIDIA_SMI_LIMIT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class TorchSource:
    """One place to try for torch.

    Attributes:
        requirement: pip's requirement.
        index: pip's ``--index-url``; None: as this machine's pip is set.
        label: Shown while it is tried.
    """

    requirement: str
    index: str | None
    label: str


@dataclass(frozen=True, slots=True)
class Card:
    """An NVIDIA card, with its compute capability: (8, 9) for Ada."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class NvidiaDriver:
    """An answer of `nvidia-smi`.

    Attributes:
        major: 580 of driver 580.65.06; None where it does not say.
        cards: Those whose compute capability it says.
    """

    major: int | None = None
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """A build of PyTorch, and the reason for it.

    Attributes:
        tag: "cpu", "cu126" or "cu130".
        advice: The way to a better build, in a sentence; empty where this is the best.
    """

    tag: str
    reason: str
    advice: str = ""

    @property
    def title(self) -> str:
        return f"PyTorch for {build_name(self.tag)}"


def build_name(tag: str) -> str:
    """ "CUDA 13.0" of "cu130"; "ROCm 7.2" of "rocm7.2"; "the CPU" of "cpu"."""
    if tag.startswith("rocm"):
        return f"ROCm {tag.removeprefix('rocm')}"
    return f"CUDA {tag[2:-1]}.{tag[-1]}" if tag.startswith("cu") else "the CPU"


def has_nvidia_driver(system: str) -> bool:
    """Look for an NVIDIA driver by files only, so that every start can afford to ask."""
    if system == "win32":
        system_root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        return Path(system_root, "System32", "nvcuda.dll").is_file()
    signs = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so.1")
    return any(Path(sign).exists() for sign in signs)


def read_driver() -> NvidiaDriver:
    """Ask `nvidia-smi`; a driver that does not answer counts as unknown."""
    program = find_program("nvidia-smi")
    if program is None:
        return NvidiaDriver()
    query = [program, "--query-gpu=driver_version,compute_cap,name", "--format=csv,noheader"]
    try:
        return parse_driver(run_hidden(query, _NVIDIA_SMI_LIMIT_S).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return NvidiaDriver()


def parse_driver(answer: str) -> NvidiaDriver:
    """Read lines such as ``580.65.06, 8.9, NVIDIA L4``; others are left out."""
    majors = [int(found) for found in re.findall(r"^\s*(\d+)\.", answer, re.MULTILINE)]
    found = re.findall(r"^[^,\n]*,\s*(\d+)\.(\d+)\s*,\s*(.*?)\s*$", answer, re.MULTILINE)
    cards = tuple(Card(name, (int(major), int(minor))) for major, minor, name in found)
    return NvidiaDriver(min(majors, default=None), cards)


def choose_build(driver: NvidiaDriver | None, system: str = sys.platform) -> BuildChoice:
    """Choose the build for this driver and these cards; one for AMD's is only taken by its name."""
    if driver is None:
        return BuildChoice("cpu", "No NVIDIA driver was found.")
    oldest_driver = CUDA_12_DRIVER.get(system, _CUDA_12_DRIVER)
    if driver.major is not None and driver.major < oldest_driver:
        return BuildChoice(
            "cpu",
            f"Every CUDA build needs driver {oldest_driver} or newer, and this PC has {driver.major}.",
            f"Update the NVIDIA driver to {CUDA_13_DRIVER} or newer, then set up PyTorch again.",
        )
    usable = [card for card in driver.cards if card.capability >= MAXWELL]
    if driver.cards and not usable:
        return BuildChoice("cpu", f"No CUDA build supports the {_named(driver.cards)}: it is older than Maxwell.")
    has_13 = driver.major is None or driver.major >= CUDA_13_DRIVER
    return _choose_for_new_driver(driver, usable) if has_13 else _choose_for_older_driver(driver, usable)


def _choose_for_new_driver(driver: NvidiaDriver, cards: Sequence[Card]) -> BuildChoice:
    old = [card for card in cards if card.capability < TURING]
    new = [card for card in cards if card.capability > HOPPER]
    if old and new:
        return BuildChoice(
            "cu130",
            f"The {_named(new)} needs it.",
            f"The {_named(old)} cannot be used beside it: no build supports both.",
        )
    if old:
        return BuildChoice("cu126", f"The {_named(old)} is older than Turing, which CUDA 13.0 begins with.")
    if driver.major is None:
        reason = f"The driver did not say its version. CUDA 13.0 needs driver {CUDA_13_DRIVER} or newer."
        return BuildChoice("cu130", reason)
    cards_text = f" and the {_named(cards)}" if cards else ""
    return BuildChoice("cu130", f"It suits driver {driver.major}{cards_text}.")


def _choose_for_older_driver(driver: NvidiaDriver, cards: Sequence[Card]) -> BuildChoice:
    new = [card for card in cards if card.capability > HOPPER]
    if not new:
        return BuildChoice(
            "cu126", f"CUDA 13.0 needs driver {CUDA_13_DRIVER} or newer, and this PC has {driver.major}."
        )
    update = f"Update the NVIDIA driver from {driver.major} to {CUDA_13_DRIVER} or newer: the {_named(new)} needs it."
    if len(new) == len(cards):
        return BuildChoice("cu130", f"The {_named(new)} needs CUDA 13.0.", update)
    return BuildChoice("cu126", f"It suits driver {driver.major} and the other cards.", update)


def _named(cards: Sequence[Card]) -> str:
    """ "GeForce RTX 4090", "GeForce RTX 4090 and GeForce GTX 1080"."""
    names = list(dict.fromkeys(card.name.removeprefix("NVIDIA ") for card in cards))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def cuda_tag(driver: NvidiaDriver) -> str:
    """The CUDA build for a machine that is to have one: ``cu130`` or ``cu126``."""
    tag = choose_build(driver).tag
    return "cu126" if tag == "cpu" else tag


def torch_sources(system: str, version: str, tag: str, index: str | None = None) -> tuple[TorchSource, ...]:
    """List the places to try, best first.

    Args:
        version: The pinned version, ``2.13.0``.
        tag: The build: "cpu", "cu126", "rocm7.2".
        index: A package index that the person named (`ENV_TORCH_INDEX`); it is then the only one asked.
    """
    plain = f"torch=={version}"
    if index:
        return (TorchSource(plain, index, f"torch {version} from the index in {ENV_TORCH_INDEX}"),)
    if tag != "cpu":
        build = f"torch {version} for {build_name(tag)}"
        tagged = (
            TorchSource(f"{plain}+{tag}", None, build),
            TorchSource(f"{plain}+{tag}", f"{PYTORCH_INDEX}/{tag}", f"{build} from PyTorch's own index"),
        )
        # PyPI's Windows build has no CUDA, and none of PyPI's has ROCm: such a one would silently train on the CPU.
        return (
            tagged if system == "win32" or tag == ROCM_TAG else (*tagged, TorchSource(plain, None, f"torch {version}"))
        )
    if system != "linux":
        return (TorchSource(plain, None, f"torch {version}"),)
    return (
        TorchSource(f"{plain}+cpu", None, f"torch {version} for the CPU"),
        TorchSource(f"{plain}+cpu", f"{PYTORCH_INDEX}/cpu", f"torch {version} for the CPU from PyTorch's own index"),
        TorchSource(plain, None, f"torch {version} with its CUDA libraries (several GB: no CPU build was found)"),
    )


def pinned_torch_version(constraints: str) -> str:
    """The version in the ``torch==`` line of constraints.txt; raises `ValueError` without one."""
    found = re.search(r"^torch==([^\s+;]+)", constraints, re.MULTILINE)
    if found is None:
        raise ValueError("constraints.txt has no torch== line")
    return found.group(1)
