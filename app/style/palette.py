"""The colours of ranks, states and plots, each for a light and a dark ground.

The first ranks use hues of the Okabe–Ito palette; all eight differ in lightness as well, so that people with any
colour vision can tell them apart (`tests/unit/app/style/test_palette.py` measures it). Each has a contrast of at
least 3 to 1 against its ground.
The same rank has the same colour in every plot, row and log. No meaning hangs on colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from PySide6.QtGui import QColor, QPalette

from app.style.tones import blend, is_dark, tone

RANK_COLOURS: Final = (
    ("#0072b2", "#56b4e9"),  # blue, sky blue
    ("#d55e00", "#e69f00"),  # vermilion, orange
    ("#00a37a", "#1fe8a0"),  # bluish green
    ("#a3366f", "#e0308a"),  # reddish purple
    ("#063b59", "#4a70ee"),  # navy, blue
    ("#532b02", "#c25c0c"),  # brown, vermilion
    ("#3a5f22", "#f5ea3c"),  # moss, yellow
    ("#5b21d0", "#eef4f4"),  # violet, white
)
STATE_TONES: Final = {
    "idle": "muted",
    "starting": "info",
    "training": "success",
    "pausing": "warning",
    "stopping": "warning",
    "stopped": "muted",
    "finished": "accent",
    "interrupted": "warning",
    "failed": "error",
    "damaged": "error",
}


@dataclass(frozen=True, slots=True)
class PlotColours:
    """Colours of a plot, taken from a palette.

    Attributes:
        clear: The ground, transparent: under a picture of curves.
        grid: Lines of the grid; opaque, so that they are cheap.
        frame: Zero lines and the plot's edge.
        thread: Lines between evaluation points.
        work, wait: Step time in which the device worked and waited.
    """

    ground: QColor
    clear: QColor
    text: QColor
    muted: QColor
    grid: QColor
    frame: QColor
    eval: QColor
    thread: QColor
    work: QColor
    wait: QColor


def rank_colour(rank: int, palette: QPalette) -> QColor:
    """The colour of a rank on this palette; it repeats after eight."""
    return _rank_colour(rank, is_dark(palette))


def _rank_colour(rank: int, dark: bool) -> QColor:
    on_light, on_dark = RANK_COLOURS[rank % len(RANK_COLOURS)]
    return QColor(on_dark if dark else on_light)


def state_colour(word: str, palette: QPalette) -> QColor:
    """The colour of a run's state; always shown beside its word."""
    return tone(palette, STATE_TONES.get(word, "muted"))


def faint(colour: QColor, palette: QPalette, share: float = 0.32) -> QColor:
    """A colour mixed into the plot's ground. Opaque: translucent lines cost twenty times as much to draw."""
    return blend(colour, palette.color(QPalette.ColorRole.Base), share)


def plot_colours(palette: QPalette) -> PlotColours:
    """Colours that are not a rank's; equal palettes share one value, which must not be changed."""
    ground, text = palette.color(QPalette.ColorRole.Base), palette.color(QPalette.ColorRole.Text)
    return _plot_colours(ground.rgba(), text.rgba(), is_dark(palette))


@lru_cache(maxsize=8)
def _plot_colours(ground_rgba: int, text_rgba: int, dark: bool) -> PlotColours:
    ground, text = QColor.fromRgba(ground_rgba), QColor.fromRgba(text_rgba)
    return PlotColours(
        ground=ground,
        clear=QColor(ground.red(), ground.green(), ground.blue(), 0),
        text=text,
        muted=blend(text, ground, 0.65),
        grid=blend(text, ground, 0.10),
        frame=blend(text, ground, 0.25),
        eval=text,
        thread=blend(text, ground, 0.35),
        work=blend(_rank_colour(0, dark), ground, 0.4),
        wait=blend(_rank_colour(1, dark), ground, 0.75),
    )
