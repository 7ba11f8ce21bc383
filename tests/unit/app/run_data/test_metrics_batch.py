"""Lines of the file as numbers and events."""

from __future__ import annotations

import json

import numpy as np

from app.run_data.metrics_batch import Rewound, Rows, parse_lines


def line(**fields: object) -> bytes:
    return json.dumps({"ts": 1.5, "rank": 0, "attempt": 1} | fields).encode()


def test_steps_become_columns_by_rank() -> None:
    batch = parse_lines(
        [
            line(event="step", step=1, loss=2.5, note="text", flag=True),
            line(event="step", rank=1, step=1, loss=2.25),
            line(event="step", step=2, loss=None, nonfinite=["loss"], lr=0.1),
        ]
    )
    first, second = batch.parts
    assert isinstance(first, Rows)
    assert isinstance(second, Rows)
    assert (first.group, first.count, second.group, second.count) == ("rank0", 2, "rank1", 1)
    assert first.values.keys() == {"step", "ts", "loss", "lr"}
    np.testing.assert_array_equal(first.values["loss"], [2.5, np.nan])
    np.testing.assert_array_equal(first.values["lr"], [np.nan, 0.1])


def test_a_number_that_was_never_finite_is_a_column_of_gaps() -> None:
    (rows,) = parse_lines([line(event="step", step=1, loss=None, nonfinite=["loss"])]).parts
    assert isinstance(rows, Rows)
    assert np.isnan(rows.values["loss"]).all()
    assert "nonfinite" not in rows.values


def test_devices_evaluations_and_other_events() -> None:
    batch = parse_lines(
        [
            line(event="device", rank=-1, uuid="GPU-1", utilization_percent=97, throttle_reasons=["power"]),
            line(event="device", rank=-1, cpu_percent=12.0),
            line(event="eval", step=100, val_loss=1.75),
            line(event="commit", checkpoint=3),
        ]
    )
    assert [part.group for part in batch.parts if isinstance(part, Rows)] == ["device/GPU-1", "device/host", "eval"]
    assert [event["event"] for event in batch.events] == ["eval", "commit"]


def test_a_resumed_launch_divides_the_rows_before_from_the_rows_after() -> None:
    batch = parse_lines(
        [
            line(event="step", step=9),
            line(event="launch", rank=-1, attempt=2, resumed_from={"0": 8, "1": 7}),
            line(event="step", step=9),
        ]
    )
    assert [type(part) for part in batch.parts] == [Rows, Rewound, Rows]
    assert batch.parts[1] == Rewound({"0": 8, "1": 7})
    assert parse_lines([line(event="launch", rank=-1, resumed_from=None)]).parts == []


def test_damaged_lines_are_counted_and_hide_nothing() -> None:
    batch = parse_lines(
        [b"{", b"[1]", b'{"no": "event"}', b"", b"\xff\xfe", b'{"event":[1]}', line(event="step", step=1)]
    )
    assert (batch.lines, batch.damaged, len(batch.parts)) == (7, 6, 1)


def test_huge_integers_and_nested_values_are_survived() -> None:
    text = b'{"event":"step","rank":0,"step":1,"ts":1,"a":123456789012345678901234567890,"b":{"c":1}}'
    (rows,) = parse_lines([text]).parts
    assert isinstance(rows, Rows)
    assert rows.values["a"][0] == 123456789012345678901234567890.0
    assert "b" not in rows.values
