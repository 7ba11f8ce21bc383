"""Windows' commit charge: how many ranks it allows, and what is said about the others."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.errors import PreflightError
from core.launch.commit_charge import (
    CPU_RANK_BYTES,
    CUDA_RANK_BYTES,
    KEPT_FREE_BYTES,
    capped_devices,
    check_commit,
    rank_commit_bytes,
    ranks_that_fit,
)
from core.launch.resolved import resolve
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows
CPUS = tuple(Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(4))
GPUS = tuple(Device(f"GPU-{number}", "cuda", number, f"RTX {number}") for number in range(4))


def room_for(devices: tuple[Device, ...]) -> int:
    return KEPT_FREE_BYTES + sum(rank_commit_bytes(device) for device in devices)


def test_without_a_limit_all_fit() -> None:
    assert ranks_that_fit(GPUS, None) == 4
    assert capped_devices(GPUS, None) == (GPUS, ())
    check_commit(GPUS, None)


@pytest.mark.parametrize("devices", [CPUS, GPUS])
@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_as_many_fit_as_memory_was_left_for(devices: tuple[Device, ...], count: int) -> None:
    free = room_for(devices[:count])
    assert ranks_that_fit(devices, free) == count
    assert ranks_that_fit(devices, free - 1) == max(0, count - 1)


def test_a_measured_rank_counts_instead_of_the_usual_one() -> None:
    free = KEPT_FREE_BYTES + 4 * CPU_RANK_BYTES
    assert ranks_that_fit(CPUS, free, measured=2 * CPU_RANK_BYTES) == 2
    assert ranks_that_fit(GPUS[:1], KEPT_FREE_BYTES + CUDA_RANK_BYTES, measured=1) == 1  # that was a rank on the CPU


def test_devices_that_were_not_chosen_are_capped_with_a_sentence() -> None:
    devices, notes = capped_devices(GPUS, room_for(GPUS[:2]))
    assert devices == GPUS[:2]
    (note,) = notes
    assert note.startswith("The run takes 2 of 4 devices: Windows has 5.9 GiB of memory and page file left")
    assert "page file's size" in note
    assert capped_devices(GPUS, 0)[0] == GPUS[:1]


def test_chosen_devices_are_refused_with_how_many_fit() -> None:
    with pytest.raises(PreflightError) as caught:
        check_commit(CPUS, room_for(CPUS[:3]))
    error = caught.value
    assert "4 processes need at least" in error.cause and "there is room for 3 of them" in error.cause
    assert "or choose 3 devices" in error.next_step and "--devices cpux3" in error.next_step
    with pytest.raises(PreflightError, match="there is room for none"):
        check_commit(GPUS[:1], 0)


def test_a_run_on_devices_that_were_not_chosen_starts_on_those_that_fit() -> None:
    platform = Platform("windows", "2.13.0+cu130", "13.0", 8, commit_free=room_for(GPUS[:3]))
    run = resolve(RunConfig(recipe="minigpt"), get_recipe("minigpt"), (*CPUS, *GPUS), platform)
    assert (run.world_size, run.mode) == (3, Mode.INDEPENDENT)
    assert any("3 of 4 devices" in note for note in run.device_notes)
