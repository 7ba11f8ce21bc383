"""Charts as values."""

from __future__ import annotations

import dataclasses
import json

import pytest

from core.measure.bench.charts import MOST_POINTS, BenchChart, charts_of
from core.measure.bench.contenders import Kind
from core.records import read_record
from tests.unit.core.measure.bench.made import KILLED, SUMS, WEAK, bench, memory, steps


def test_efficiency_with_its_target() -> None:
    (chart,) = charts_of(bench(Kind.WEAK, WEAK))
    (curve,) = chart.curves
    assert (chart.name, chart.target, chart.target_label) == ("weak-efficiency", 90, "target 90 %")
    assert curve.x == [1, 2] and curve.y == pytest.approx([100, 1000 / 11]) and len(curve.low) == len(curve.high) == 2
    assert chart.x_ticks == {"1": 1, "2": 2}


def test_the_axis_has_all_devices_from_the_first_turn_on() -> None:
    (chart,) = charts_of(bench(Kind.WEAK, {0: WEAK[0]}))
    assert chart.curves[0].x == [1] and chart.x_ticks == {"1": 1, "2": 2}


def test_sums_by_transport_on_logarithmic_axes() -> None:
    time, bandwidth = charts_of(bench(Kind.COMM, {0: [SUMS]}))
    assert [curve.name for curve in time.curves] == ["shared memory", "gloo"]
    assert time.x_log and time.y_log and time.x_ticks == {"4 KiB": 4096}  # the model's size has no number
    assert bandwidth.curves[0].low == [] and time.curves[0].low == pytest.approx([0.1])


def test_memory_over_steps_has_as_many_points_as_can_be_shown() -> None:
    peak, over_time = charts_of(bench(Kind.MEMORY, {0: [memory([1 << 20] * 5000)], 1: [memory([1 << 20], [1 << 21])]}))
    assert peak.curves[0].y == [1, 2] and peak.x_ticks == {"1": 1, "2": 2}
    assert len(over_time.curves[0].x) <= MOST_POINTS and over_time.curves[1].y == [2.0]
    assert [curve.name for curve in over_time.curves] == ["1 device", "2 devices"]


def test_accumulation_by_devices() -> None:
    (chart,) = charts_of(bench(Kind.ACCUMULATION, {0: steps(0.4), 4: steps(0.1)}))
    assert [(curve.name, curve.x) for curve in chart.curves] == [("1 device", [1]), ("2 devices", [1])]


def test_nothing_measured_is_no_chart() -> None:
    assert charts_of(bench(Kind.WEAK, {0: [KILLED]})) == []
    assert charts_of(bench(Kind.MEMORY, {})) == []


@pytest.mark.parametrize("kind", [Kind.WEAK, Kind.COMM])
def test_they_reach_another_process_as_json(kind: Kind) -> None:
    for chart in charts_of(bench(kind, WEAK if kind == Kind.WEAK else {0: [SUMS]})):
        assert read_record(BenchChart, json.loads(json.dumps(dataclasses.asdict(chart)))) == chart
