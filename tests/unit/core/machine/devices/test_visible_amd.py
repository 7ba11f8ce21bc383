"""Which AMD GPUs ROCm's variables leave to a program, and in which order."""

from __future__ import annotations

import pytest

from core.machine.devices.device import Device
from core.machine.devices.visible_amd import visible_amd_gpus

A, B = (Device(f"GPU-{letter * 16}", "cuda", place, f"Card {letter}") for place, letter in enumerate("ab"))
NUMBERED = Device("AMD-0000:0a:00.0", "cuda", 2, "Card c")


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
def test_what_is_left(environment: dict[str, str], visible: list[Device], hidden_by: set[str]) -> None:
    found = visible_amd_gpus([A, B, NUMBERED], environment)
    shown = [device for device in found.devices if not device.hidden_by]
    assert [(device.uuid, device.index) for device in shown] == [(gpu.uuid, n) for n, gpu in enumerate(visible)]
    assert {device.hidden_by for device in found.devices} - {""} == hidden_by
    assert len(found.devices) == 3 and found.problems == ()


@pytest.mark.parametrize(
    ("value", "visible", "words"),
    [
        ("0,7,1", [A], "names 7, and there is no such AMD GPU here. ROCm ignores it and what follows it."),
        ("0,,1", [A], "names an empty place"),
        ("1,1", [B], "names Card b twice"),
        ("GPU-", [], "names GPU-"),  # of which there are two
        ("AMD-0000:0a:00.0", [], "names AMD-0000:0a:00.0"),  # ROCm knows no such name
    ],
)
def test_an_entry_that_names_none_ends_the_list(value: str, visible: list[Device], words: str) -> None:
    found = visible_amd_gpus([A, B, NUMBERED], {"ROCR_VISIBLE_DEVICES": value})
    assert [device.uuid for device in found.devices if not device.hidden_by] == [gpu.uuid for gpu in visible]
    (problem,) = found.problems
    assert problem.startswith(f"ROCR_VISIBLE_DEVICES={value} ") and words in problem
