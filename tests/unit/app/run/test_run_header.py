"""The run's header: name, state, progress, figures and actions."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.actions.actions import Actions
from app.run.hero_figures import HeroFigure
from app.run.hero_tiles import shortened
from app.run.run_header import RunHeader
from app.run.run_summary import RunSummary
from tests.helpers.event_counts import EventCounts
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def header_of(qtbot: QtBot, width: int = 900) -> RunHeader:
    menu = QMenu()
    qtbot.addWidget(menu)
    actions = Actions(menu)
    header = RunHeader(actions, menu, menu)
    qtbot.addWidget(header)
    header.resize(width, 160)
    header.show_name("shakespeare-ddp")
    header.show()
    return header


def test_the_header_keeps_its_shape_while_figures_run(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    places = set()
    for step, left in ((9, 9.0), (1000, 3000.0), (99_999, 600.0)):
        header.show_summary(
            RunSummary("training", step=step, total_steps=100_000, seconds_left=left, epoch=1, is_live=True)
        )
        header.show_figures([HeroFigure("Loss", f"{left / step:.3g}", "↓ 0.04", "better")])
        QApplication.processEvents()
        places.add((header.bar.x(), header.bar.width(), header.rest.x(), header.heroes.tiles[0].width()))
    assert len(places) == 1
    assert header.rest.geometry().right() < header.rest.parentWidget().width()
    assert header.steps.text() == "99,999 / 100,000" and "10 m 00 s left" in header.rest.full_text


def test_figures_that_run_ask_for_no_new_layout(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    going = RunSummary("training", step=998, total_steps=100_000, seconds_left=3000.0, epoch=1, is_live=True)
    header.show_summary(going)
    QApplication.processEvents()
    layouts = EventCounts(header, QEvent.Type.LayoutRequest)
    for step in range(999, 1010):
        header.show_summary(dataclasses.replace(going, step=step, seconds_left=3000.0 - step))
        QApplication.processEvents()
    assert header.steps.text() == "1,009 / 100,000"
    assert layouts.total == 0


def test_what_is_shown_already_is_not_shown_again(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    over = RunSummary("finished", step=1000, total_steps=1000, seconds_run=60.0, about="MiniGPT")
    header.show_summary(over)
    header.show_notes(["Gradients through shared memory."])
    QApplication.processEvents()
    events = EventCounts(header, QEvent.Type.Paint, QEvent.Type.ToolTipChange, QEvent.Type.LayoutRequest)
    header.show_summary(over)
    header.show_notes(["Gradients through shared memory."])
    QApplication.processEvents()
    assert events.counts == {}


def test_the_bar_is_indeterminate_while_a_run_prepares(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    going = RunSummary("starting", doing="CPU 1: importing torch", step=500, total_steps=1000, is_live=True)
    header.show_summary(going)
    assert header.bar.maximum() == 0 and "Preparing" in header.bar.accessibleDescription()
    header.show_summary(dataclasses.replace(going, word="training", doing=""))
    assert (header.bar.value(), header.bar.maximum()) == (500, 1000)


def test_only_what_can_be_done_now_is_offered(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    shown = {}
    for word in ("training", "stopping", "stopped", "finished", "failed", "interrupted"):
        header.show_summary(RunSummary(word))
        buttons = {"stop": header.stop, "resume": header.resume, "primary": header.resume_first}
        shown[word] = [name for name, button in buttons.items() if not button.isHidden()]
    assert shown == {
        "training": ["stop"], "stopping": ["stop"], "stopped": ["resume"], "finished": ["resume"],
        "failed": ["primary"], "interrupted": ["primary"],
    }  # fmt: skip


def test_a_tile_says_its_figure_to_screen_readers(qtbot: QtBot) -> None:
    header = header_of(qtbot)
    header.show_figures([HeroFigure("Loss", "1.82", "↓ 0.04", "better"), HeroFigure("Memory", tip="GPU 0")])
    tiles = header.heroes.tiles
    assert tiles[0].accessibleName() == "Loss: 1.82 ↓ 0.04" and "GPU 0" in tiles[1].toolTip()
    header.show_figures([HeroFigure("Loss")])
    assert tiles[1].isHidden() and tiles[0].accessibleName() == "Loss: –"


@pytest.mark.parametrize(
    ("note", "letters", "shown"),
    [
        ("↓ best at 220", 13, "↓ best at 220"),
        ("↓ best at 220", 9, "↓ best"),
        ("best 2.39 at 180", 10, "best 2.39"),
        ("peak · GPU 1", 8, "peak"),
        ("nats per token ↓ 0.04", 18, "nats per token"),
        ("step 220", 5, ""),
    ],
)
def test_a_note_loses_whole_parts(note: str, letters: int, shown: str) -> None:
    assert shortened(note, lambda text: len(text) <= letters) == shown


def test_a_long_name_leaves_the_buttons_in_sight(qtbot: QtBot) -> None:
    header = header_of(qtbot, 620)
    header.show_name("a very long name of a run that somebody typed, of 200 letters " * 3)
    header.show_summary(RunSummary("stopped", about="MiniGPT · DDP on RTX 6000 Ada + RTX 4090"))
    QApplication.processEvents()
    assert header.width() == 620
    assert header.more.geometry().right() < 620 and "…" in header.title.text()
