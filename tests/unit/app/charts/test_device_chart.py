"""Charts of devices: curves on the axis of the steps, figures, warnings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication

from app.charts.device_chart import (
    MEMORY,
    POWER,
    QUANTITIES,
    TEMPERATURE,
    UTILISATION,
    DeviceChart,
    DeviceWarnings,
    Quantity,
    device_cards,
)
from app.plots.curve_options import CurveOptions
from app.plots.drawing import Line
from app.plots.readout import GAP, LEAST_LABEL, Readout
from app.plots.source import View
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.style.fonts import tabular
from app.style.palette import rank_colour
from core.machine.devices import POWER_CAP, DeviceSample
from core.machine.devices.names import RankNames
from tests.helpers.synthetic_run import series_of

WHOLE = View("step", 1, 100)
FIGURES = {
    "utilization_percent": 90, "memory_used_bytes": 12 * 2**30, "memory_total_bytes": 48 * 2**30, "power_w": 150,
    "temperature_celsius": 61,
}  # fmt: skip
HOT = "hot: the driver lowers the clock"


def run_of(*uuids: str, **more: float) -> RunSeries:
    """Steps 1 to 100 in 100 s from 1001 s on; each device is sampled every second from 990 s on."""
    lines: list[dict[str, object]] = [
        {"ts": 1000.0 + step, "event": "step", "rank": 0, "step": step, "loss": 1.0} for step in range(1, 101)
    ]
    for second in range(990, 1101):
        for uuid in uuids:
            figures = FIGURES | {"utilization_percent": 50 + second % 10} | more
            lines.append({"ts": float(second), "event": "device", "rank": -1, "uuid": uuid} | figures)
    return series_of(*lines)


def add(run: RunSeries, *lines: dict[str, object]) -> RunSeries:
    run.apply(parse_lines([json.dumps(line).encode() for line in lines]))
    return run


def chart(quantity: Quantity, run: RunSeries, *trained_on: str, is_over: bool = False) -> DeviceChart:
    names = RankNames(labels={"GPU-1": "GPU 1 · RTX 4090"})
    return DeviceChart(quantity, lambda: run, CurveOptions(names=names, trained_on=trained_on, is_over=is_over))


def texts(source: DeviceChart, view: View = WHOLE) -> list[str]:
    return [f"{r.label} {r.text}" for r in source.readings(view, QPalette())]


@pytest.mark.parametrize("view", [View("ts", 1001, 1100), WHOLE], ids=["time", "step"])
def test_a_device_is_on_the_same_axis_as_the_ranks(view: View) -> None:
    run = run_of("GPU-0", "GPU-1")
    for quantity, value in ((MEMORY, 12), (TEMPERATURE, 61), (POWER, 150)):
        lines = [one for one in chart(quantity, run).layers(view, 500, QPalette()) if isinstance(one, Line)]
        assert len(lines) == 2
        for line in lines:
            np.testing.assert_allclose(line.y, value)
            assert line.x.tolist() == sorted(line.x.tolist()) and not np.isnan(line.x).any()
            if view.axis == "step":
                assert (line.x.min(), line.x.max()) == (view.low, view.high)


def test_a_device_has_the_colour_of_its_rank_and_its_short_name() -> None:
    found = chart(UTILISATION, run_of("GPU-0", "GPU-1"), "GPU-1").traces(QPalette())
    assert [(one.label, one.key) for one in found] == [("GPU 1", "rank 0"), ("GPU-0", "GPU-0")]
    assert found[0].colour == rank_colour(0, QPalette()) != found[1].colour


@pytest.mark.usefixtures("qapp")
def test_a_device_without_a_rank_keeps_its_name() -> None:
    readings = chart(UTILISATION, run_of("GPU-0", "GPU-1", "GPU-2"), "GPU-1").readings(WHOLE, QPalette())
    assert [one.keeps_label for one in readings] == [False, True, True], "those without a rank have one colour"
    widths = {}
    for name, shown in (("all", readings), ("none", [replace(one, keeps_label=False) for one in readings])):
        readout = Readout()
        readout.show_readings(shown)
        widths[name] = readout.least_width()
    assert widths["all"] - widths["none"] == pytest.approx(2 * (named_width("GPU-0") + GAP), abs=1)


def named_width(label: str) -> float:
    return min(LEAST_LABEL, QFontMetricsF(tabular(QApplication.font())).horizontalAdvance(label))


def test_figures_have_their_own_units() -> None:
    run = run_of("GPU-1")
    assert [texts(chart(quantity, run)) for quantity in QUANTITIES.values()] == [
        ["GPU 1 50 %"], ["GPU 1 12 / 48 GiB"], ["GPU 1 61 °C"], ["GPU 1 150 W"],
    ]  # fmt: skip
    assert texts(chart(UTILISATION, run), View("step", 1, 100, cursor=37)) == ["GPU 1 57 %"]


def test_of_a_run_that_is_over_means_and_peaks_are_read() -> None:
    idle = {"ts": 1102.0, "event": "device", "rank": -1, "uuid": "GPU-1", "utilization_percent": 0, "power_w": 20}
    run = add(run_of("GPU-1"), idle)
    sources = [chart(quantity, run, "GPU-1", is_over=True) for quantity in QUANTITIES.values()]
    assert [texts(source)[0] for source in sources] == [
        "GPU 1 54 %", "GPU 1 12 / 48 GiB", "GPU 1 61 °C", "GPU 1 149 W",
    ]  # fmt: skip
    assert [source.note() for source in sources] == ["mean of the run", "peak", "peak", "mean of the run"]
    assert texts(sources[0], View("step", 1, 100, cursor=37)) == ["GPU 1 57 %"]


def test_a_lost_card_has_no_figure_and_a_hidden_one_no_curve() -> None:
    lost = {"ts": 1101.0, "event": "device", "rank": -1, "uuid": "GPU-1", "power_w": 20}
    source = chart(UTILISATION, add(run_of("GPU-1"), lost), "GPU-1")
    assert [r.text for r in source.legend(WHOLE, QPalette())] == ["–"]
    source._options.hide("rank 0", True)
    assert source.layers(WHOLE, 100, QPalette()) == [] and source.legend(WHOLE, QPalette())[0].is_hidden


def test_a_process_on_a_cpu_has_no_memory_of_its_own() -> None:
    run = run_of("cpu:0")
    assert texts(chart(MEMORY, run, "cpu:0")) == ["CPU 0 12 GiB"]
    assert chart(MEMORY, run, "cpu:0").note() == "this run's processes"


def test_windows_says_what_spilled_out_of_a_card() -> None:
    run = run_of("GPU-1", rank_shared_bytes=3 * 2**30)
    assert texts(chart(MEMORY, run)) == ["GPU 1 12 / 48 GiB + 3.0 GiB shared"]


def test_a_machine_without_devices_is_drawn_itself() -> None:
    run = series_of({"ts": 1, "event": "device", "rank": -1, "uuid": "host", "cpu_percent": 20})
    source = chart(UTILISATION, run)
    assert texts(source, View("ts", 0, 1)) == ["machine 20 %"] and source.note() == "whole machine"
    assert [card.title for card in device_cards({"ts", "cpu_percent"})] == ["Utilisation"]
    assert chart(POWER, run).layers(View("ts", 0, 1), 100, QPalette()) == []


def test_a_device_that_is_held_down_says_so() -> None:
    warnings, devices = DeviceWarnings(), ("GPU-0", "GPU-1")
    warnings.take_samples([DeviceSample(uuid, 1.0, throttle_reasons=(POWER_CAP,)) for uuid in devices])
    assert warnings.text(devices, {}) == "", "a power cap is a choice"
    warnings.take_samples([DeviceSample("GPU-0", 1.0, throttle_reasons=(HOT, POWER_CAP))])
    for second in range(10):
        assert warnings.text(devices, {}) == f"GPU-0: {HOT}."
        warnings.take_samples([DeviceSample("GPU-0", 2.0 + second)])
    warnings.take_samples([DeviceSample("GPU-0", 20.0)])
    assert warnings.text(devices, {}) == ""
    warnings.take_samples([DeviceSample(uuid, 21.0, throttle_reasons=(HOT,)) for uuid in "abcde"])
    assert warnings.text("abcdef", {}).splitlines()[2:] == ["3 more devices have a warning."]
    assert warnings.text((), {}) == "", "a run that is over"
