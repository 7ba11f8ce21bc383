"""Names of devices and of the ranks that train on them."""

from __future__ import annotations

from core.machine.devices import Device
from core.machine.devices.names import RankNames, device_label


def test_a_device_is_named_by_its_number_and_model() -> None:
    assert device_label(Device("cpu:1", "cpu", 1, "AMD EPYC")) == "CPU 1"
    assert device_label(Device("GPU-a", "cuda", 0, "NVIDIA GeForce RTX 4090")) == "GPU 0 · RTX 4090"
    assert device_label(Device("GPU-c", "cuda", 2, "AMD Radeon RX 7900 XTX", is_amd=True)) == "GPU 2 · RX 7900 XTX"
    assert device_label(Device("GPU-b", "cuda", 1, "NVIDIA L40S", hidden_by="CUDA_VISIBLE_DEVICES=0")) == "L40S"


def test_a_rank_has_the_name_of_its_device_and_keeps_its_number_in_the_tooltip() -> None:
    names = RankNames(("GPU-a", "cpu:1", "GPU-0123456789abcdef"), {"GPU-a": "GPU 0 · RTX 4090"})
    assert [names.full(rank) for rank in range(4)] == ["GPU 0 · RTX 4090", "CPU 1", "GPU-01234567…", "rank 3"]
    assert [names.short(rank) for rank in (0, 1)] == ["GPU 0", "CPU 1"]
    assert names.with_rank(0) == "GPU 0 (rank 0)" and names.with_rank(3) == "rank 3"
