"""The value range that fits, linear and logarithmic."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from app.plots.scale import Scale, fitting


def test_everything_is_inside_with_room() -> None:
    scale = fitting([np.array([1.0, np.nan, 3.0]), np.array([2.0, 5.0])])
    assert scale is not None
    assert scale.low < 1.0
    assert scale.high > 5.0
    placed = scale.place(np.array([1.0, 5.0]), 10, 100)
    assert 10 < placed[1] < placed[0] < 110


def test_a_spike_does_not_flatten_the_curve() -> None:
    values = np.concatenate((np.linspace(2, 3, 1000), [1e6]))
    scale = fitting([values])
    assert scale is not None
    assert scale.high < 5


def test_a_steep_start_is_kept() -> None:
    steps = np.arange(1000)
    scale = fitting([2 + 8 * np.exp(-steps / 50)])
    assert scale is not None
    assert scale.high > 9.9


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0, 1e-9])
def test_one_value_gets_a_range(value: float) -> None:
    scale = fitting([np.array([value])])
    assert scale is not None
    assert scale.low < value < scale.high


def test_a_floor_is_the_bottom() -> None:
    scale = fitting([np.array([100.0, 120.0])], floor=0.0)
    assert scale is not None
    assert scale.low == 0.0
    assert fitting([np.array([0.0])], floor=0.0) == Scale(0.0, 1.0)


def test_measuring_and_averaging_load_no_more_of_numpy() -> None:
    """numpy.ma comes with np.percentile and np.unique, and would hold up the first picture."""
    code = """
import sys
import numpy as np
from app.run_data.curves import Curve, mean_of
from app.plots.scale import fitting
x = np.arange(9.0)
assert len(mean_of([Curve(x, x, x, x, 1), Curve(x[2:], x[2:], x[2:], x[2:], 1)]).x) == 9
assert fitting([x]) is not None
print("numpy.ma" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_nothing_to_show() -> None:
    assert fitting([]) is None
    assert fitting([np.array([np.nan])]) is None
    assert fitting([np.array([-1.0, 0.0])], log=True) is None


def test_a_logarithm_leaves_out_what_it_cannot_show() -> None:
    scale = fitting([np.array([0.0, -3.0, 1.0, 100.0])], log=True)
    assert scale is not None
    assert scale.low < 0 < 2 < scale.high
    placed = scale.place(np.array([0.0, -3.0, 10.0]), 0, 100)
    assert np.isnan(placed[:2]).all()
    assert 0 < placed[2] < 100


@pytest.mark.parametrize(
    ("scale", "above", "below"),
    [
        (Scale(1.0, 3.0), [False, False, False, True, False], [False, True, False, False, False]),
        (Scale(0.0, 1.0, log=True), [False, False, False, False, False], [False, True, False, False, False]),
        (Scale(0.0, 0.3, log=True), [False, False, True, True, False], [False, True, False, False, False]),
    ],
    ids=["linear", "ten", "two"],
)
def test_what_lies_outside(scale: Scale, above: list[bool], below: list[bool]) -> None:
    """As the pixels say it; a logarithm has no place for what is not positive, and a gap is nowhere."""
    low, high = np.array([1.5, 0.5, 2.5, 2.0, np.nan]), np.array([1.9, 0.9, 2.9, 3.5, np.nan])
    assert [side.tolist() for side in scale.outside(low, high)] == [above, below]
    with np.errstate(invalid="ignore"):
        assert (scale.place(high, 0.0, 1.0) < 0).tolist() == above
        assert (scale.place(low, 0.0, 1.0) > 1).tolist() == below
    nothing = np.array([-1.0, 0.0])
    if scale.log:
        assert not scale.outside(nothing, nothing)[1].any()
