"""The price of synchronising: measured for real, kept, and put into words from the shown run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.background import OperationRunner
from app.controllers.sync_pricing import Pricing
from core.machine.devices import Device
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.timeout(120)]
SLOTS = [Device(f"cpu:{n}", "cpu", n, f"CPU {n}", 2**34) for n in range(2)]


@pytest.mark.second_tier
@pytest.mark.slow
def test_measuring_two_slots_for_real(qtbot: QtBot, tmp_path: Path) -> None:
    runner = OperationRunner()
    pricing = Pricing(runner, tmp_path)
    said: list[str] = []
    pricing.price_changed.connect(said.append)
    pricing.update(SLOTS, 50)
    states: list[bool] = []
    pricing.measuring_changed.connect(states.append)
    with qtbot.assertNotEmitted(pricing.failed):
        pricing.measure()
        qtbot.waitUntil(lambda: states == [True, False], timeout=90_000)
    assert " MB/s between 2 devices" in said[-1] and (tmp_path / "links.json").is_file()
    again = Pricing(runner, tmp_path)
    again.price_changed.connect(said.append)
    said.clear()
    again.update(SLOTS[::-1], 50)
    qtbot.waitUntil(lambda: bool(said) and " MB/s between" in said[-1], timeout=10_000)
    pricing.close()
    again.close()
    runner.close()
