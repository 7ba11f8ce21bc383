"""Memory strip of New run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel
from pytestqt.qtbot import QtBot

from app.state.memory_text import MEASURING, MemoryText, ModeLine, RemedyText
from app.views.new_run.memory_strip import MemoryStrip
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
CHANGES = {"batch_size": 4, "grad_accum_steps": 2}
MODES = (
    ModeLine("DDP", "880 MB", "Does not fit", "error", "Weights: 100 MB", is_chosen=True, time="1.7 × · 1.2 h"),
    ModeLine("ZeRO 2", "", "–", "muted", "It needs DeepSpeed.", is_chosen=False),
)
SHORT = MemoryText(
    "Does not fit",
    "error",
    "CPU 0 880 MB of 500 MB",
    "",
    MODES,
    ("A total",),
    (RemedyText("Less", "Much less", CHANGES),),
    "1.20 s a step",
    "Use both devices.",
)


@pytest.fixture
def strip(qtbot: QtBot) -> MemoryStrip:
    made = MemoryStrip()
    qtbot.addWidget(made)
    return made


def test_it_is_there_only_where_there_is_something_to_estimate(strip: MemoryStrip) -> None:
    assert strip.isHidden()
    strip.show_memory(MEASURING)
    assert not strip.isHidden() and strip.devices.text() == "Estimating memory…"
    assert strip.verdict.isHidden() and strip.toggle.isHidden()
    strip.show_memory(None)
    assert strip.isHidden()


def test_opened_it_has_a_line_for_every_mode(strip: MemoryStrip, qtbot: QtBot) -> None:
    strip.show_memory(SHORT)
    strip.show()
    assert strip.verdict.text() == "Does not fit" and not strip.modes.isVisible()
    qtbot.mouseClick(strip.toggle, Qt.MouseButton.LeftButton)
    assert strip.modes.isVisible() and strip.totals.text() == "A total"
    grid = strip.modes.layout()
    assert isinstance(grid, QGridLayout)
    name, need, verdict, other, none = (_label(grid, *place) for place in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)))
    assert (name.text(), need.text(), verdict.text()) == ("DDP", "880 MB", "Does not fit")
    assert name.font().bold() and not other.font().bold()
    assert (none.text(), none.toolTip()) == ("", "It needs DeepSpeed.")
    strip.show_memory(MEASURING)
    assert not strip.modes.isVisible()
    strip.show_memory(SHORT)
    assert strip.modes.isVisible(), "opened, it stays open"


def test_time_and_advice_are_in_sight_and_each_modes_time_behind_the_arrow(strip: MemoryStrip, qtbot: QtBot) -> None:
    strip.show_memory(SHORT)
    strip.show()
    assert strip.time.isVisible() and strip.time.text() == "1.20 s a step"
    assert strip.advice.isVisible() and strip.advice.text() == "Use both devices."
    qtbot.mouseClick(strip.toggle, Qt.MouseButton.LeftButton)
    grid = strip.modes.layout()
    assert isinstance(grid, QGridLayout)
    assert [_label(grid, row, 3).text() for row in (0, 1)] == ["1.7 × · 1.2 h", ""]
    strip.show_memory(MEASURING)
    assert strip.time.isHidden() and strip.advice.isHidden()


def test_a_remedy_is_a_button_that_asks_for_its_settings(strip: MemoryStrip, qtbot: QtBot) -> None:
    strip.show_memory(SHORT)
    strip.show()
    (button,) = strip.remedies.buttons
    assert button.text() == "Less"
    with qtbot.waitSignal(strip.remedy_requested) as asked:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked.args == [CHANGES]
    strip.show_memory(MemoryText("Fits", "success"))
    assert strip.remedies.isHidden()


def _label(grid: QGridLayout, row: int, column: int) -> QLabel:
    item = grid.itemAtPosition(row, column)
    label = None if item is None else item.widget()
    assert isinstance(label, QLabel)
    return label
