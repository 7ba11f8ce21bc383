"""Colours of ranks: visible on their ground, and told apart with any colour vision."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from PySide6.QtGui import QColor, QPalette

from app.style.palette import RANK_COLOURS
from app.style.theme import themed_palette
from tests.unit.app.widgets.test_small_parts import contrast

Colour = npt.NDArray[np.float64]

# What becomes of linear red, green and blue: Machado, Oliveira and Fernandes 2009, severity 1.
SIGHT = {
    "all three cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
}
# Distances in Oklab, times 100; about 2 can just be seen side by side.
LEAST = {"all three cones": 15.0, "deuteranopia": 9.5, "protanopia": 8.5}


def oklab(colour: QColor, sight: str) -> Colour:
    """A colour as it is seen, in Björn Ottosson's Oklab."""
    srgb = np.array(colour.getRgbF()[:3])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ seen
    )
    axes = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    found: Colour = 100 * np.array(axes) @ cones
    return found


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_ranks_can_be_told_apart(sight: str, dark: bool) -> None:
    colours = [oklab(QColor(pair[dark]), sight) for pair in RANK_COLOURS]
    near = {
        (one, other): round(float(np.linalg.norm(colours[one] - colours[other])), 1)
        for one, other in itertools.combinations(range(len(colours)), 2)
    }
    assert {pair: apart for pair, apart in near.items() if apart < LEAST[sight]} == {}


@pytest.mark.parametrize("dark", [False, True])
def test_each_rank_stands_out_from_a_card(dark: bool) -> None:
    ground = themed_palette(dark).color(QPalette.ColorRole.Base)
    assert all(contrast(QColor(pair[dark]), ground) >= 3 for pair in RANK_COLOURS)
