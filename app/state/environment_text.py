"""Texts of the page that sets up PyTorch: what can be added, for which machine, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.machine.torch_builds import NvidiaDriver, cuda_tag

if TYPE_CHECKING:
    from core.environments.make import Progress

ABOUT: Final = (
    "Training needs PyTorch, which is not part of this installation. It gets a Python of its own; nothing else on this "
    "PC is changed. What has arrived is kept when you stop, and it is used only after it has passed a test."
)
_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class ExtraText:
    """Something that can be added.

    Attributes:
        name: The extra.
        title: Its check box.
    """

    name: str
    title: str


EXTRAS: Final = (
    ExtraText("hf", "Language models from Hugging Face, LoRA, its datasets"),
    ExtraText("bpe", "BPE tokens for MiniGPT"),
    ExtraText("data", "Parquet files"),
    ExtraText("rl", "Reinforcement learning (Gymnasium)"),
)


def build_text(driver: NvidiaDriver | None) -> str:
    """Which PyTorch it will be: "PyTorch for CUDA 13.0, for your NVIDIA driver 580"."""
    if driver is None:
        return "PyTorch for the CPU: no NVIDIA driver was found."
    version = cuda_tag(driver).removeprefix("cu")
    known = f" {driver.major}" if driver.major is not None else ""
    return f"PyTorch for CUDA {version[:-1]}.{version[-1]}, which suits your NVIDIA driver{known}."


def share_of(progress: Progress) -> int | None:
    """How much of the download has arrived, in thousandths; None in steps without a size."""
    return round(_STEPS * progress.done / progress.total) if progress.total else None
