"""Memory strip of New run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.draft.draft import CheckedDraft
from app.draft.memory_text import INCOMPLETE, MEASURING, NOT_ESTIMATED, MemoryText, ModeLine
from app.new_run.memory_strip import FitQuestion, MemoryStrip
from app.new_run.summary_lines import SummaryLines
from core.errors import ConfigError
from core.measure.estimate.remedies import Remedy
from core.recipes.parameter_formula import ParameterCount
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
    "needs 880 MB, 500 MB free",
    "In this computer's memory.",
    "",
    MODES,
    ("A total",),
    (Remedy("micro_batch", "Less", "Much less", CHANGES), Remedy("mode", "Other", "Another mode", {"mode": "fsdp"})),
    "1.20 s a step",
    "Use both devices.",
)


@pytest.fixture
def foot(qtbot: QtBot) -> SummaryLines:
    made = SummaryLines(QAction("&Start"))
    qtbot.addWidget(made)
    made.resize(420, 200)
    made.show()
    return made


@pytest.fixture
def strip(foot: SummaryLines) -> MemoryStrip:
    return foot.memory


def checked(*wrong: str) -> CheckedDraft:
    return CheckedDraft(None, {name: ConfigError(name, "It is wrong.", "Change it.") for name in wrong}, {})


def test_the_foot_is_as_high_whatever_it_says(foot: SummaryLines) -> None:
    heights = {}

    def look(state: str) -> None:
        QGuiApplication.processEvents()
        heights[state] = foot.sizeHint().height()

    look("nothing")
    for text in (
        INCOMPLETE,
        MEASURING,
        NOT_ESTIMATED,
        SHORT,
        replace(SHORT, remedies=()),
        MemoryText("Fits", "success"),
    ):
        foot.show_memory(text)
        look(f"{text.verdict} {text.figure} {len(text.remedies)}")
    foot.show_parameters(ParameterCount(412 * 10**9, 412 * 10**9))
    foot.show_notes(["A long note that says something about what will happen. " * 3] * 3)
    look("notes")
    foot.show_waiting("Looking for devices…")
    look("waiting")
    foot.show_checked(checked("lr", "steps"), None)
    look("wrong")
    assert len(set(heights.values())) == 1, heights


def test_it_says_one_figure_and_one_button(foot: SummaryLines, strip: MemoryStrip, qtbot: QtBot) -> None:
    foot.show_memory(SHORT)
    assert (strip.verdict.text(), strip.figure.full_text) == ("Does not fit", "needs 880 MB, 500 MB free")
    (button,) = strip.remedies.buttons
    assert button.text() == "Less" and button.isVisible()
    with qtbot.waitSignal(strip.remedy_requested) as asked:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked.args == [CHANGES]
    (other,) = strip.more.buttons
    assert not other.isVisible(), "the others are behind the arrow"
    foot.show_memory(MemoryText("Fits", "success"))
    assert strip.remedies.isHidden() and strip.more.isHidden()


def test_opened_it_has_a_line_for_every_mode(foot: SummaryLines, strip: MemoryStrip, qtbot: QtBot) -> None:
    foot.show_memory(SHORT)
    assert not strip.modes.isVisible()
    qtbot.mouseClick(strip.toggle, Qt.MouseButton.LeftButton)
    assert strip.modes.isVisible() and strip.totals.text() == "A total"
    grid = strip.modes.layout()
    assert isinstance(grid, QGridLayout)
    name, need, verdict, other, none = (_label(grid, *place) for place in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)))
    assert (name.text(), need.text(), verdict.text()) == ("DDP", "880 MB", "Does not fit")
    assert name.font().bold() and not other.font().bold()
    assert (none.text(), none.toolTip()) == ("", "It needs DeepSpeed.")
    assert [_label(grid, row, 3).text() for row in (0, 1)] == ["1.7 × · 1.2 h", ""]
    assert strip.time.text() == "1.20 s a step" and strip.advice.text() == "Use both devices."


def test_one_line_says_what_matters_most(foot: SummaryLines) -> None:
    foot.show_memory(SHORT)
    assert foot.status.full_text == "1.20 s a step · Use both devices."
    foot.show_notes(["It is joined.", "It is long."])
    assert foot.status.full_text == "It is joined. (and 1 more)" and foot.notes.text() == "It is joined.\nIt is long."
    foot.show_waiting("Looking for devices…")
    assert foot.status.full_text == "Looking for devices…"
    foot.show_checked(checked("lr"), None)
    assert foot.fix.isVisible() and foot.status.full_text == ""


def test_a_run_that_does_not_fit_is_asked_about_once(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    question = FitQuestion(SHORT, window)
    assert question.text() == "Does not fit: needs 880 MB, 500 MB free." and question.defaultButton() is question.cancel
    with qtbot.waitSignal(question.start_chosen):
        question.start.click()


def _label(grid: QGridLayout, row: int, column: int) -> QLabel:
    item = grid.itemAtPosition(row, column)
    label = None if item is None else item.widget()
    assert isinstance(label, QLabel)
    return label
