"""CUDA_VISIBLE_DEVICES and ROCm's variables: which GPUs a run may use, and how they are counted."""

from __future__ import annotations

import pytest

from core.config.mode import Mode
from core.errors import ConfigError
from core.launch.mode import choose_devices
from core.machine.devices import Device
from core.machine.devices.resolve import resolve_devices
from core.machine.devices.visible import visible_amd_gpus, visible_gpus
from core.machine.platform import Platform

CUDA = Platform("linux", "2.13.0+cu130", "13.0", 4)
OLD = Device("GPU-30303030-1111", "cuda", 0, "RTX 3090", 24 << 30, (8, 6))
NEW = Device("GPU-40904090-2222", "cuda", 1, "RTX 4090", 24 << 30, (8, 9))
TWIN = Device("GPU-40904090-3333", "cuda", 2, "RTX 4090", 24 << 30, (8, 9))
LIKE = Device("GPU-40804080-4444", "cuda", 2, "RTX 4080 Super", 16 << 30, (8, 9))
MIG = Device("MIG-a1", "cuda", 0, "A100 MIG 1g.5gb", 5 << 30, (8, 0))
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
A, B = (Device(f"GPU-{letter * 16}", "cuda", place, f"Card {letter}") for place, letter in enumerate("ab"))
NUMBERED = Device("AMD-0000:0a:00.0", "cuda", 2, "Card c")


def seen(value: str | None, *gpus: Device, order: dict[str, str] | None = None) -> tuple[list[str], tuple[str, ...]]:
    """UUIDs of what is visible, by their new numbers, and what is said to be wrong."""
    environment = {**(order or {}), **({} if value is None else {"CUDA_VISIBLE_DEVICES": value})}
    found = visible_gpus(gpus, environment, lambda uuid: MIG if uuid == MIG.uuid else None)
    visible = [gpu for gpu in found.devices if not gpu.hidden_by]
    if value is not None:
        assert [gpu.index for gpu in visible] == list(range(len(visible)))
    assert {gpu.uuid for gpu in found.devices} >= {gpu.uuid for gpu in gpus}
    return [gpu.uuid for gpu in visible], found.problems


@pytest.mark.parametrize(
    ("value", "order", "expected"),
    [
        (None, {}, [OLD, NEW, TWIN]),
        ("0,1,2", BY_BUS, [OLD, NEW, TWIN]),
        ("2, 0", BY_BUS, [TWIN, OLD]),
        ("1", BY_BUS, [NEW]),
        ("GPU-40904090-3333", {}, [TWIN]),
        ("GPU-3,GPU-40904090-2", {}, [OLD, NEW]),
        ("0,1,2", {}, [OLD, NEW, TWIN]),  # all are visible
        ("1gpu", BY_BUS, [NEW]),  # as CUDA reads it
        ("", {}, []),
        (" ", {}, []),
        ("-1", {}, []),
        ("MIG-a1", {}, [MIG]),
    ],
)
def test_what_is_visible(value: str | None, order: dict[str, str], expected: list[Device]) -> None:
    assert seen(value, OLD, NEW, TWIN, order=order) == ([gpu.uuid for gpu in expected], ())


@pytest.mark.parametrize(
    ("value", "visible", "words"),
    [
        ("0,7,1", [OLD], "names 7, and there is no such GPU"),
        ("GPU-4", [], "names GPU-4"),  # two begin so
        ("0,,1", [OLD], "names an empty place"),
        ("1,1", [], "twice"),
        ("NoDevFiles", [], "names NoDevFiles"),
        ("MIG-none", [], "names MIG-none"),
    ],
)
def test_what_names_no_gpu_ends_the_list_and_is_said(value: str, visible: list[Device], words: str) -> None:
    uuids, (problem,) = seen(value, OLD, NEW, TWIN, order=BY_BUS)
    assert uuids == [gpu.uuid for gpu in visible] and words in problem and f"CUDA_VISIBLE_DEVICES={value}" in problem


def test_numbers_mean_the_same_for_gpus_of_one_kind() -> None:
    assert seen("0", NEW, TWIN) == ([NEW.uuid], ())


def test_numbers_for_unlike_gpus_in_an_unknown_order_are_refused() -> None:
    for gpus in ((NEW, LIKE), (OLD, NEW), (OLD, NEW, TWIN)):
        uuids, (problem,) = seen("0", *gpus)
        assert uuids == [] and "CUDA_DEVICE_ORDER=PCI_BUS_ID" in problem
    found = visible_gpus([NEW, LIKE], {"CUDA_VISIBLE_DEVICES": "0"}, lambda _: None).devices
    for texts in (("auto",), ("cuda:0",), (NEW.uuid,)):
        with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES=0 counts GPUs") as caught:
            choose_devices(texts, Mode.AUTO, found, CUDA)
        assert "by UUID" in caught.value.next_step
    assert [device.uuid for device in resolve_devices(["cpu:2"], found)] == ["cpu:0", "cpu:1"]


def test_a_hidden_gpu_is_not_chosen_and_named_it_is_refused_with_both_values() -> None:
    found = visible_gpus([OLD, NEW], {"CUDA_VISIBLE_DEVICES": "1", **BY_BUS}, lambda _: None).devices
    assert [device.uuid for device in choose_devices(("auto",), Mode.AUTO, found, CUDA)[0]] == [NEW.uuid]
    assert [device.uuid for device in resolve_devices(["cuda:0"], found)] == [NEW.uuid]
    for text, words in (
        (OLD.uuid, f"{OLD.uuid} (RTX 3090) is hidden by CUDA_VISIBLE_DEVICES=1."),
        ("cuda:1", "There is no cuda:1: CUDA_VISIBLE_DEVICES=1 leaves cuda:0 alone visible."),
    ):
        with pytest.raises(ConfigError) as caught:
            resolve_devices([text], found)
        assert caught.value.cause == words
        assert "cuda:0 (RTX 4090" in caught.value.next_step and "RTX 3090" not in caught.value.next_step


def test_with_every_gpu_hidden_the_cpu_trains_and_it_is_said() -> None:
    found = visible_gpus([OLD, NEW], {"CUDA_VISIBLE_DEVICES": "-1"}, lambda _: None).devices
    devices, (note,) = choose_devices(("auto",), Mode.AUTO, found, CUDA)
    assert [device.uuid for device in devices] == ["cpu:0"]
    assert note == "The run trains on the CPU: CUDA_VISIBLE_DEVICES=-1 hides every GPU of this machine."


@pytest.mark.parametrize(
    ("environment", "visible", "hidden_by"),
    [
        ({}, [A, B, NUMBERED], set()),
        ({"ROCR_VISIBLE_DEVICES": "1"}, [B], {"ROCR_VISIBLE_DEVICES=1"}),
        ({"ROCR_VISIBLE_DEVICES": "gpu-BBBB"}, [B], {"ROCR_VISIBLE_DEVICES=gpu-BBBB"}),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, [NUMBERED, A], {"HIP_VISIBLE_DEVICES=2,0"}),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [B], {"CUDA_VISIBLE_DEVICES=1"}),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, [A], {"HIP_VISIBLE_DEVICES=0"}),
        # HIP counts what ROCm's runtime leaves.
        (
            {"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1"},
            [B],
            {"ROCR_VISIBLE_DEVICES=2,1", "HIP_VISIBLE_DEVICES=1"},
        ),
        ({"HIP_VISIBLE_DEVICES": "-1"}, [], {"HIP_VISIBLE_DEVICES=-1"}),
        ({"ROCR_VISIBLE_DEVICES": ""}, [], {'ROCR_VISIBLE_DEVICES=""'}),
    ],
)
def test_what_rocm_leaves_visible(environment: dict[str, str], visible: list[Device], hidden_by: set[str]) -> None:
    found = visible_amd_gpus([A, B, NUMBERED], environment)
    shown = [device for device in found.devices if not device.hidden_by]
    assert [(device.uuid, device.index) for device in shown] == [(gpu.uuid, n) for n, gpu in enumerate(visible)]
    assert {device.hidden_by for device in found.devices} - {""} == hidden_by
    assert len(found.devices) == 3 and found.problems == ()


@pytest.mark.parametrize(
    ("value", "visible", "words"),
    [
        ("0,7,1", [A], "names 7, and there is no such GPU here. ROCm ignores it and what follows it."),
        ("0,,1", [A], "names an empty place"),
        ("1,1", [B], "names Card b twice"),
        ("GPU-", [], "names GPU-"),  # of which there are two
        ("AMD-0000:0a:00.0", [], "names AMD-0000:0a:00.0"),  # ROCm knows no such name
    ],
)
def test_an_entry_that_names_no_amd_gpu_ends_the_list(value: str, visible: list[Device], words: str) -> None:
    found = visible_amd_gpus([A, B, NUMBERED], {"ROCR_VISIBLE_DEVICES": value})
    assert [device.uuid for device in found.devices if not device.hidden_by] == [gpu.uuid for gpu in visible]
    (problem,) = found.problems
    assert problem.startswith(f"ROCR_VISIBLE_DEVICES={value} ") and words in problem
