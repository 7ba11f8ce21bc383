"""The link between devices, measured by real ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import ConfigError, PreflightError, RankdeckError
from core.machine.devices.device import Device
from core.machine.platform import Platform, this_platform
from core.measure.link import Link, keep_link, known_link, measure_link
from tests.helpers.children import children_with

SLOTS = [Device(f"cpu:{i}", "cpu", i, f"CPU {i}") for i in range(3)]


@pytest.mark.slow
@pytest.mark.windows
def test_two_slots_are_measured_and_the_result_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="measures for real")
    platform = this_platform()
    link = measure_link(SLOTS[:2], platform, seconds=0.3)
    assert link.mb_per_s > 0 and link.latency_s > 0
    assert (link.ranks, link.backend) == (2, "gloo")
    assert link.sharded_mb_per_s is not None and link.sharded_mb_per_s > 0
    assert link.sharded_latency_s is not None and link.sharded_latency_s > 0
    keep_link(link, SLOTS[:2], platform, tmp_path / "runs")
    assert known_link(SLOTS[1::-1], platform, tmp_path / "runs") == link
    assert known_link(SLOTS, platform, tmp_path / "runs") is None


@pytest.mark.slow
def test_a_measurement_that_lasts_too_long_or_is_cancelled_leaves_nothing_behind() -> None:
    pytest.importorskip("torch", reason="starts ranks for real")
    for limit_s, cancelled, words in ((0.2, False, "did not finish within 0.2 s"), (60.0, True, "cancelled")):
        with pytest.raises(RankdeckError) as refusal:
            measure_link(SLOTS[:2], this_platform(), seconds=60.0, limit_s=limit_s, cancelled=lambda c=cancelled: c)
        assert words in refusal.value.cause
        assert not children_with("workers.programs.measure_main")


def test_one_device_and_a_torch_without_gloo_are_refused_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="needs two devices"):
        measure_link(SLOTS[:1], this_platform())
    with pytest.raises(PreflightError):
        measure_link(SLOTS[:2], Platform("windows", "2.9.1+cpu", None, 4))


def test_what_was_kept_and_is_damaged_is_measured_again(tmp_path: Path) -> None:
    platform = this_platform()
    for text in ("", "[1]", json.dumps({"format": "rankdeck-links", "links": {"x": 1}})):
        (tmp_path / "links.json").write_text(text, encoding="utf-8")
        assert known_link(SLOTS[:2], platform, tmp_path) is None
    link = Link(1.0, 1.0, 2, "gloo")
    keep_link(link, SLOTS[:2], platform, tmp_path)
    assert known_link(SLOTS[:2], platform, tmp_path) == link
