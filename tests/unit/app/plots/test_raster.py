"""Dense curves as pixel columns: every extreme is there, neighbours join, gaps stay empty."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QColor

from app.plots.raster import Raster

BLUE = QColor("#0072b2")
RED = QColor("#d55e00")


def filled(raster: Raster, colour: QColor = BLUE) -> np.ndarray:
    """Which pixels have a colour: rows by columns."""
    image = raster.image(1.0)
    pixels = np.zeros((raster.height, image.width()), bool)
    for y in range(image.height()):
        pixels[raster.top + y] = [image.pixelColor(x, y) == colour for x in range(image.width())]
    return pixels


def test_the_extremes_of_all_bins_of_a_column() -> None:
    raster = Raster(4, 20)
    x = np.array([0.1, 0.6, 1.2, 1.9, 2.5, 3.5])
    raster.stroke(x, np.array([5.0, 3, 5, 5, 5, 5]), np.array([8.0, 6, 9, 12, 8, 8]), BLUE)
    assert [(column.argmax(), column.sum()) for column in filled(raster).T] == [(3, 6), (5, 8), (5, 4), (5, 4)]


def test_neighbours_that_do_not_overlap_are_joined() -> None:
    raster = Raster(2, 20)
    raster.stroke(np.array([0.5, 1.5]), np.array([15.0, 2.0]), np.array([16.0, 4.0]), BLUE)
    first, second = filled(raster).T
    assert first.nonzero()[0].tolist() == list(range(4, 17))
    assert second[2:5].all()


def test_gaps_stay_empty_and_columns_without_a_bin_are_filled() -> None:
    raster = Raster(8, 10)
    x, y = np.array([0.5, 2.5, 4.5, 5.5, 7.5]), np.array([3.0, 3, np.nan, np.nan, 3])
    raster.stroke(x, y, y + 1, BLUE)
    assert filled(raster).any(axis=0).tolist() == [True, True, True, False, False, False, False, True]


def test_what_lies_outside_is_cut_off() -> None:
    raster = Raster(4, 10)
    raster.stroke(np.array([-50.0, 0.5, 1.5, 900.0]), np.array([-99.0, 2, 2, 5]), np.array([-98.0, 3, 3, 1e9]), BLUE)
    assert filled(raster)[2:4, :2].all()
    outside = Raster(4, 10)
    outside.stroke(np.array([0.5, 1.5]), np.array([50.0, 50]), np.array([60.0, 60]), BLUE)
    assert outside.is_empty


def test_an_area_runs_straight_between_few_positions() -> None:
    raster = Raster(11, 11)
    raster.area(np.array([0.0, 10.0]), np.array([10.0, 0.0]), np.array([10.0, 10.0]), BLUE)
    assert filled(raster).sum(axis=0).tolist() == list(range(1, 12))


def test_later_fills_cover_earlier_ones() -> None:
    raster = Raster(3, 6)
    x, zeros = np.array([0.5, 1.5, 2.5]), np.zeros(3)
    raster.area(x, zeros, zeros + 5, BLUE)
    raster.stroke(x, zeros + 2, zeros + 3, RED)
    assert filled(raster, RED)[2:4].all()
    assert filled(raster, BLUE)[4:].all()


def test_more_fills_than_there_are_numbers() -> None:
    """Each colour is a byte: beyond 255 the last ones share one, and nothing before them is touched."""
    raster = Raster(2, 300)
    x, zeros = np.array([0.5, 1.5]), np.zeros(2)
    for row in range(300):
        raster.stroke(x, zeros + row, zeros + row, QColor(row % 256, row // 256, 9))
    image = raster.image(1.0)
    assert [image.pixelColor(0, row).red() for row in (0, 100, 253)] == [0, 100, 253]
    assert image.pixelColor(0, 299) == QColor(299 % 256, 1, 9)
    assert image.pixelColor(0, 299).alpha() == 255


def test_only_rows_that_hold_something_are_in_the_picture() -> None:
    raster = Raster(3, 40)
    x, zeros = np.array([0.5, 1.5, 2.5]), np.zeros(3)
    raster.stroke(x, zeros + 12, zeros + 14, BLUE)
    raster.stroke(x, zeros + 20, zeros + 21, RED)
    assert (raster.top, raster.image(1.0).height()) == (12, 10)
