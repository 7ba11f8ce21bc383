"""The price of synchronising: measured for real, kept, and put into words from the shown run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.controllers.background import OperationRunner
from app.controllers.sync_pricing import Pricing
from app.run_data.metrics_batch import MetricsBatch, Rows
from app.run_data.run_series import RunSeries
from app.state.sync_price import price_text
from core.machine.devices import Device
from core.measure.link import Link
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.timeout(120)]
SLOTS = [Device(f"cpu:{n}", "cpu", n, f"CPU {n}", 2**34) for n in range(2)]
LINK = Link(1000.0, 0.001, 2, "gloo")


def run_of(**figures: float) -> RunSeries:
    """A run of one rank whose steps all reported these figures, of a model of 4 MB."""
    run = RunSeries()
    values = {"step": np.arange(1.0, 11.0), **{name: np.full(10, value) for name, value in figures.items()}}
    run.apply(MetricsBatch([Rows("rank0", 10, values)], [{"event": "model", "trainable_bytes": 4_000_000}]))
    return run


def test_nothing_is_said_before_it_is_measured() -> None:
    assert price_text(None, 10, run_of(step_time_s=0.1)) == ""


def test_without_a_run_only_the_link_is_known() -> None:
    words = price_text(LINK, 10, RunSeries())
    assert words.startswith("1,000 MB/s between 2 devices.") and "Select a run" in words


def test_the_shown_run_gives_size_and_time() -> None:
    # 4 MB take 5 ms; every 10 steps that is 0.4 MB and 0.5 ms a step of 50 ms without waiting.
    words = price_text(LINK, 10, run_of(step_time_s=0.06, sync_wait_s=0.01))
    assert "0.4 MB a step, under 1 % of the time waiting" in words
    assert "nothing is sent" in price_text(LINK, None, run_of(step_time_s=0.06)).lower()


def test_what_the_run_achieved_stands_beside_it() -> None:
    words = price_text(LINK, 10, run_of(step_time_s=0.06, sync_wait_s=0.012, sync_bytes=400_000))
    assert words.endswith("Selected run: 0.4 MB a step, about 20 % of the time waiting.")


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
