"""A device's figures as `metrics.jsonl` gets them: what is not known is left out."""

from __future__ import annotations

from core.machine.devices.device import DeviceSample, HostSample


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
