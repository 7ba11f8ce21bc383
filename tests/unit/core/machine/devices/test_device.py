"""A device's figures as `metrics.jsonl` gets them: what is not known is left out."""

from __future__ import annotations

from dataclasses import replace

from core.machine.devices.device import Device, DeviceSample, HostSample


def test_a_line_has_what_is_known_and_zero_is_known() -> None:
    sample = DeviceSample("GPU-1", 5.0, utilization_percent=0.0, throttle_reasons=("hot",), is_unusable=True)
    assert sample.as_dict() == {"uuid": "GPU-1", "ts": 5.0, "utilization_percent": 0.0, "throttle_reasons": ["hot"]}
    assert DeviceSample("GPU-1", 5.0, error="lost").as_dict() == {
        "uuid": "GPU-1",
        "ts": 5.0,
        "throttle_reasons": [],
        "error": "lost",
    }


def test_the_machines_line_too() -> None:
    assert HostSample(5.0, cpu_percent=0.0).as_dict() == {"ts": 5.0, "cpu_percent": 0.0}


def test_cards_of_one_model_are_alike_and_so_are_slots() -> None:
    card = Device("GPU-a", "cuda", 0, "RTX 3060", 12 << 30)
    assert card.model == replace(card, uuid="GPU-b", index=1).model
    assert card.model not in {replace(card, memory_bytes=8 << 30).model, replace(card, name="RTX 4090").model}
    assert Device("cpu:0", "cpu", 0, "CPU 0").model == Device("cpu:1", "cpu", 1, "CPU 1").model
