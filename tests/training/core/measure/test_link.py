"""The link between devices, measured by real ranks."""

from __future__ import annotations

import pytest

from core.errors import ConfigError, PreflightError, RankdeckError
from core.machine.devices.device import Device
from core.machine.platform import Platform, this_platform
from core.measure.link import measure_link
from tests.helpers.children import children_with

SLOTS = [Device(f"cpu:{i}", "cpu", i, f"CPU {i}") for i in range(3)]


@pytest.mark.slow
@pytest.mark.windows
def test_the_link_of_two_slots_is_measured() -> None:
    pytest.importorskip("torch", reason="measures for real")
    link = measure_link(SLOTS[:2], this_platform(), seconds=0.3)
    assert link.mb_per_s > 0 and link.latency_s > 0
    assert (link.ranks, link.backend) == (2, "gloo")
    assert link.sharded_mb_per_s is not None and link.sharded_mb_per_s > 0
    assert link.sharded_latency_s is not None and link.sharded_latency_s > 0


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
