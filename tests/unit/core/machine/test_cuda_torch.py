"""The command that brings a CUDA build of PyTorch."""

from __future__ import annotations

import pytest

from core.machine.cuda_torch import cuda_tag, cuda_torch_offer
from core.machine.devices import Device
from core.machine.torch_builds import PYTORCH_INDEX


def card(capability: tuple[int, int] | None) -> Device:
    return Device("GPU-1", "cuda", 0, "Card", 2**34, capability)


@pytest.mark.parametrize(
    ("driver", "capability", "tag"),
    [
        ("580.65.06", (8, 9), "cu130"),
        ("579.99", (8, 9), "cu126"),
        ("581.57", (5, 0), "cu126"),
        (None, None, "cu130"),
        ("unknown", (7, 5), "cu130"),
        ("572.83", (12, 0), "cu130"),
        ("581.57", (12, 0), "cu130"),
        ("470.1", (8, 6), "cu126"),
    ],
)
def test_the_build_fits_driver_and_card(driver: str | None, capability: tuple[int, int] | None, tag: str) -> None:
    assert cuda_tag(driver, [card(capability)]) == tag


def test_amd_cards_get_the_rocm_build() -> None:
    radeon = Device("GPU-1", "cuda", 0, "Card", 2**34, is_amd=True)
    assert cuda_tag(None, [radeon, radeon]) == "rocm7.2"
    assert cuda_tag("581.57", [card((8, 9)), radeon]) == "cu130"
    assert cuda_torch_offer(None, [radeon]).argv[-1] == f"{PYTORCH_INDEX}/rocm7.2"


def test_the_offer_replaces_torch_alone() -> None:
    argv = cuda_torch_offer("580.65", [card((9, 0))]).argv
    assert argv[-3:] == ("torch==2.13.0+cu130", "--index-url", f"{PYTORCH_INDEX}/cu130")
    assert "--force-reinstall" not in argv
