"""GPUs of two makers in one machine: which of them a PyTorch can train on, and what is refused."""

from __future__ import annotations

import pytest

from core.config.mode import Mode
from core.errors import ConfigError, PreflightError
from core.launch.mode import can_train_on, choose_devices, usable_devices, why_no_nccl
from core.machine.devices import Device
from core.machine.platform import Platform

pytestmark = pytest.mark.windows
RTX = Device("GPU-40904090-2222", "cuda", 0, "RTX 4090")
RADEON = Device("GPU-a1b2c3d4e5f60718", "cuda", 1, "Radeon RX 7900 XTX", is_amd=True)
BOTH = (RTX, RADEON)
CUDA = Platform("linux", "2.13.0+cu130", "13.0", 4)
ROCM = Platform("linux", "2.13.0+rocm7.2", None, 4, rocm_build="7.2.26015")
NO_TORCH = Platform("linux", None, None, 4)


@pytest.mark.parametrize(("platform", "expected"), [(CUDA, (RTX,)), (ROCM, (RADEON,))])
def test_auto_takes_those_of_its_build(platform: Platform, expected: tuple[Device, ...]) -> None:
    assert choose_devices(("auto",), Mode.AUTO, BOTH, platform) == (expected, ())
    assert usable_devices(BOTH, platform) == (expected, ())


@pytest.mark.parametrize("platform", [CUDA, ROCM, NO_TORCH])
def test_one_run_on_both_is_refused(platform: Platform) -> None:
    with pytest.raises(ConfigError) as caught:
        choose_devices(("cuda:0", "cuda:1"), Mode.AUTO, BOTH, platform)
    assert caught.value.title == "GPUs of two makers"
    assert "RTX 4090 needs a CUDA build" in caught.value.cause and "Radeon RX 7900 XTX a ROCm" in caught.value.cause


@pytest.mark.parametrize(
    ("device", "platform", "build", "index"),
    [("cuda:1", CUDA, "CUDA 13.0", "rocm7.2"), ("cuda:0", ROCM, "ROCm 7.2", "cu130")],
)
def test_a_card_of_the_other_maker_is_refused_with_its_build(
    device: str, platform: Platform, build: str, index: str
) -> None:
    with pytest.raises(PreflightError) as caught:
        choose_devices((device,), Mode.AUTO, BOTH, platform)
    assert f"is built for {build} and cannot train on" in caught.value.cause
    assert f"whl/{index}" in caught.value.next_step


@pytest.mark.parametrize(
    ("platform", "can"),
    [
        (CUDA, [True, True, False]),
        (ROCM, [True, False, True]),
        (Platform("linux", "2.13.0+cpu", None, 4), [True, False, False]),
        (NO_TORCH, [True, True, True]),  # nothing to judge by
    ],
)
def test_a_build_trains_on_one_makers_gpus(platform: Platform, can: list[bool]) -> None:
    assert [can_train_on(device, platform) for device in (Device("cpu:0", "cpu", 0, "CPU"), *BOTH)] == can


def test_rocms_builds_have_nccl_by_name() -> None:
    assert why_no_nccl([RADEON], ROCM) == ""
