"""The device that a launcher gives a process, and what contradicts it."""

from __future__ import annotations

import pytest

from core.config.distributed import DistributedConfig
from core.config.layers import DeviceCount
from core.errors import ConfigError, UsageError
from core.launch.launched import check_devices, check_several_machines, given_device
from core.machine.devices.device import Device

pytestmark = pytest.mark.windows
GPUS = [Device(f"GPU-{n}", "cuda", n, "A card") for n in range(4)]


def place(rank: int, world: int = 2) -> DistributedConfig:
    return DistributedConfig(world, rank, rank, devices_per_node=world, launch_method="torchrun")


def test_auto_is_the_one_device_of_the_local_rank() -> None:
    assert given_device(place(1), ("auto",), None, GPUS) == GPUS[1]
    assert given_device(place(1), ("auto",), None, []).uuid == "cpu:1"
    assert given_device(place(1), ("auto",), DeviceCount(2), GPUS) == GPUS[1]
    assert given_device(place(1, 4), ("auto",), DeviceCount(-1, "--num-gpus -1"), GPUS) == GPUS[1]


def test_a_launcher_may_show_each_process_its_own_gpu() -> None:
    seen = [GPUS[3], *(Device(f"GPU-{n}", "cuda", n, "A card", hidden_by="CUDA_VISIBLE_DEVICES=3") for n in range(3))]
    assert given_device(place(1), ("auto",), None, seen) == GPUS[3]


@pytest.mark.parametrize("asked", [("cuda:0", "cuda:1"), ("GPU-0", "GPU-1"), ("cpux2",), ("cpu:0", "cpu:1")])
def test_names_that_agree_are_taken(asked: tuple[str, ...]) -> None:
    assert given_device(place(1), asked, None, GPUS).uuid in ("GPU-1", "cpu:1")


@pytest.mark.parametrize(
    ("asked", "count", "values"),
    [
        (("cuda:0",), None, ("names 1 device,", "started 2 processes")),
        (("cpux3",), None, ("names 3 devices", "started 2 processes")),
        (("cuda:2", "cuda:3"), None, ("rank 0 the device cuda:2 (GPU-2)", "LOCAL_RANK=0", "cuda:0 (GPU-0)")),
        (("cuda:0", "cuda:2"), None, ("rank 1 the device cuda:2", "LOCAL_RANK=1", "cuda:1")),
        (("auto",), DeviceCount(3), ("--world-size 3 asks for 3 devices", "2 processes")),
        (("auto",), DeviceCount(-1, "--num-gpus -1"), ("asks for 4 devices", "2 processes")),
    ],
)
def test_contradictions_have_both_values(
    asked: tuple[str, ...], count: DeviceCount | None, values: tuple[str, ...]
) -> None:
    for rank in range(2):  # every process says the same
        with pytest.raises(ConfigError) as caught:
            given_device(place(rank), asked, count, GPUS)
        assert all(value in caught.value.cause for value in values), caught.value.cause


def test_too_few_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 usable GPUs, but torchrun started 3 processes"):
        given_device(place(2, 3), ("auto",), None, GPUS[:2])


def test_two_processes_on_one_device_are_refused() -> None:
    check_devices(place(0), GPUS[:2], [0, 0])
    check_devices(place(0), [GPUS[0], GPUS[0]], [0, 1])
    with pytest.raises(ConfigError, match="ranks 0 and 1 the same device, cuda:0"):
        check_devices(place(0), [GPUS[0], GPUS[0]], [0, 0])


def test_devices_are_those_of_one_machine() -> None:
    there = place(0).replace(world_size=4, rank=3, local_rank=1, num_nodes=2, node_rank=1)
    assert given_device(there, ("cpux2",), None, GPUS).uuid == "cpu:1"
    with pytest.raises(ConfigError, match="names 4 devices, but torchrun started 4 processes, 2 of them on this"):
        given_device(there, ("cpux4",), None, GPUS)


def test_mpirun_on_several_machines_is_refused() -> None:
    check_several_machines(DistributedConfig(8, num_nodes=2, devices_per_node=4, launch_method="srun"))
    with pytest.raises(UsageError, match="mpirun started 8 processes, 4 of them on this machine"):
        check_several_machines(DistributedConfig(8, num_nodes=2, devices_per_node=4, launch_method="mpirun"))
