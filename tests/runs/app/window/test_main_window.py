"""The window as a whole: what can be done when, what is remembered, what it never loads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLabel,
    QLineEdit,
    QSlider,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.run import deferred_start_controller
from app.run.deferred_start_controller import SOON_MS
from app.runs.runs_panel import INVITATION
from app.shown_run.rank_log import LogChoice
from app.threads.bridge import Worker
from core.processes import identity
from core.run_folder.state import RunState
from tests.helpers.settings_file import settings_in
from tests.helpers.synthetic_run import Shape, make_run, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, shut, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_first_start_has_the_demo_filled_in_and_invites(open_window: OpenWindow) -> None:
    rankdeck = open_window()
    window = rankdeck.window
    assert window.runs.page.is_empty and window.runs.page.note.text() == INVITATION
    assert window.welcome.isVisible() and "about two minutes" in window.welcome.cards[0].text.text()
    assert not window.desk.is_open
    assert window.new_run.data.path() == "stdlib://"
    assert window.new_run.devices.selected()
    assert window.actions_.start.isEnabled(), window.actions_.start.toolTip()


@pytest.mark.parametrize("steps", [300, 0], ids=["with steps", "without a step"])
def test_the_shown_run_is_drawn_before_new_run_looks_around(
    steps: int, qtbot: QtBot, tmp_path: Path, runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_lines(runs_dir / "past", Shape(steps=steps)) if steps else make_run(runs_dir / "past")
    # On a busy machine a picture takes longer than that limit.
    monkeypatch.setattr(deferred_start_controller, "LATEST_MS", 60_000)
    rankdeck = Rankdeck(settings_in(tmp_path / "settings.ini"), runs_dir)
    rankdeck.settings.set_text("last_run", str(store.dir))
    seen: list[tuple[bool, bool]] = []
    look, chart = rankdeck.table.open, rankdeck.window.plots.loss.chart

    def open_table() -> None:
        seen.append((rankdeck.data.is_caught_up, chart.scale is not None))
        look()

    monkeypatch.setattr(rankdeck.table, "open", open_table)
    try:
        rankdeck.open()
        qtbot.waitUntil(lambda: rankdeck.table.is_known, timeout=50_000)
        assert seen == [(True, steps > 0)]
    finally:
        shut(rankdeck)


def test_new_run_is_shown_whole_where_it_is_wanted_before_it_is_made(
    qtbot: QtBot, tmp_path: Path, runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_start_controller, "SOON_MS", 60_000)
    monkeypatch.setattr(deferred_start_controller, "LATEST_MS", 60_000)
    settings = settings_in(tmp_path / "settings.ini")
    settings.set_values("draft", {"recipe": "actv1", "fields": {"steps": "77"}})
    rankdeck = Rankdeck(settings, runs_dir)
    window = rankdeck.window
    shown: list[str] = []

    def look() -> None:
        if window.desk.is_open:
            shown.append(window.new_run.form.rows["steps"].text())

    window.desk.placed.connect(look)
    try:
        rankdeck.open()
        window.actions_.new_run.trigger()
        assert not window.has_new_run and not window.desk.is_open, "its modules are imported first, in a thread"
        qtbot.waitUntil(lambda: window.desk.is_open, timeout=20_000)
        assert window.new_run.isVisible() and window.new_run.what.chosen() is not None
        assert set(shown) == {"77"}, "with the draft that was left, from its first moment"
        window.actions_.new_run.trigger()
        assert not window.desk.is_open
    finally:
        shut(rankdeck)


def test_new_run_stays_closed_where_it_is_not_wanted_any_more(qtbot: QtBot, tmp_path: Path, runs_dir: Path) -> None:
    rankdeck = Rankdeck(settings_in(tmp_path / "settings.ini"), runs_dir)
    window = rankdeck.window
    try:
        rankdeck.open()
        window.actions_.new_run.trigger()
        window.actions_.new_run.trigger()
        qtbot.waitUntil(lambda: rankdeck.drafting.latest is not None, timeout=20_000)
        assert window.has_new_run and not window.desk.is_open
    finally:
        shut(rankdeck)


def test_a_window_that_is_closed_at_once_leaves_nothing_behind(qtbot: QtBot, tmp_path: Path, runs_dir: Path) -> None:
    rankdeck = Rankdeck(settings_in(tmp_path / "settings.ini"), runs_dir)
    rankdeck.open()
    rankdeck.window.close_now()
    qtbot.wait(2 * SOON_MS)
    assert not rankdeck.table.is_known and rankdeck.drafting.latest is None
    shut(rankdeck)


def test_a_run_chosen_while_the_window_closes_is_not_read(open_window: OpenWindow, runs_dir: Path) -> None:
    store = make_run(runs_dir / "past")
    write_lines(store.dir, Shape(steps=30))
    rankdeck = open_window()
    rankdeck.showing.close()
    before = set(threading.enumerate())
    rankdeck.window.runs.run_chosen.emit(store.dir)
    rankdeck.window.tabs.log.log_chosen.emit(LogChoice((store.logs / "host.log",)))
    assert rankdeck.showing.run_dir is None
    assert not {thread.name for thread in set(threading.enumerate()) - before if isinstance(thread, Worker)}


def test_what_cannot_be_done_says_why(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    actions = rankdeck.window.actions_
    assert not actions.stop.isEnabled() and "No run is selected" in actions.stop.toolTip()
    assert not actions.folder.isEnabled() and "No run is selected" in actions.folder.toolTip()
    type_into(rankdeck, "lr", "fast", qtbot)
    assert not actions.start.isEnabled() and "'fast' is not a number" in actions.start.toolTip()


def test_keys_do_what_they_say(open_window: OpenWindow) -> None:
    actions = open_window().window.actions_
    keys = {
        action: action.shortcut().toString(QKeySequence.SequenceFormat.PortableText)
        for action in (actions.start, actions.stop, actions.resume, actions.reload, actions.log, actions.help)
    }
    assert list(keys.values()) == ["Ctrl+Return", "Ctrl+.", "Ctrl+R", "F5", "Ctrl+L", "F1"]
    assert [key.toString() for key in actions.new_run.shortcuts()] == ["Ctrl+N", "F9"]
    more = (actions.resume_file, actions.palette, actions.rename, actions.settings)
    assert [action.shortcut().toString() for action in more] == ["Ctrl+Shift+R", "Ctrl+K", "F2", "Ctrl+,"]


def test_everything_that_takes_the_keyboard_has_a_name(open_window: OpenWindow) -> None:
    window = open_window().window
    kinds = (QAbstractButton, QLineEdit, QComboBox, QSlider)
    nameless = []
    for widget in window.findChildren(QWidget):
        if not isinstance(widget, kinds) or widget.objectName().startswith("qt_") or _part_of(widget, QTabWidget):
            continue
        if isinstance(widget.parent(), QComboBox | QLineEdit) or type(widget).__name__ == "QToolBarExtension":
            continue
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        if not (text or widget.accessibleName()):
            nameless.append(f"{type(widget).__name__} {widget.objectName()} in {type(widget.parent()).__name__}")
    assert nameless == []
    assert window.tabs.tabBar().accessibleName()


def _part_of(widget: QWidget, kind: type[QWidget]) -> bool:
    return isinstance(widget.parent(), kind) and isinstance(widget, QAbstractButton)


def test_no_two_mnemonics_in_sight_are_the_same(open_window: OpenWindow) -> None:
    window = open_window().window
    letters: Counter[str] = Counter()
    for widget in window.findChildren(QWidget):
        text = ""
        if isinstance(widget, QAbstractButton) or (isinstance(widget, QLabel) and widget.buddy() is not None):
            text = widget.text()
        letter = QKeySequence.mnemonic(text).toString()
        if letter and widget.isVisible():
            letters[letter] += 1
    assert {letter: many for letter, many in letters.items() if many > 1} == {}


def test_sizes_and_drafts_are_remembered(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    write_lines(runs_dir / "past", Shape(steps=5))
    first = open_window()
    qtbot.waitUntil(first.window.runs.isVisible)
    first.window.resize(780, 600)  # within the offscreen screen, as a window is restored
    first.window._panes.setSizes([220, 564])
    sizes = first.window._panes.sizes()
    first.window.actions_.new_run.setChecked(True)
    first.window.desk.frame.grip.dragged.emit(first.window.width() - 400)
    type_into(first, "steps", "77", qtbot)
    first.window.new_run.mode.radios["independent"].click()
    ticked = [device.uuid for device in first.window.new_run.devices.selected()]
    shut(first)
    second = open_window().window
    assert second.new_run.form.rows["steps"].text() == "77"
    assert second.new_run.mode.mode() == "independent"
    assert not second.desk.is_open, "it is opened when a run is to be set up"
    assert second._panes.sizes() == sizes and second.desk.sheet_width == 400
    assert [device.uuid for device in second.new_run.devices.selected()] == ticked


def test_a_past_run_is_shown_when_it_is_clicked(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    write_lines(runs_dir / "past", Shape(steps=300))
    rankdeck = open_window()
    window = rankdeck.window
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 1)
    view = window.runs.view
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.model().index(0, 0)).center())
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up)
    assert window.plots.isVisible() and not window.welcome.isVisible()
    assert rankdeck.data.series.rank(0).rows == 300
    assert "past" in window.windowTitle() and window.header.state.text() == "Finished"
    assert "def f():" in window.tabs.samples.text.toPlainText()
    qtbot.waitUntil(lambda: "minigpt" in window.tabs.config.text.toPlainText())
    shut(rankdeck)
    again = open_window()
    qtbot.waitUntil(lambda: again.data.is_caught_up)
    assert again.showing.run_dir == runs_dir / "past"


def test_a_failed_run_says_why_in_its_row_and_over_the_tabs(
    open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    error = {
        "title": "CPU 1: out of memory",
        "cause": "It needed 3 GB.",
        "next_step": "Halve the micro-batch.",
        "log": "logs/rank1.log",
    }
    write_lines(runs_dir / "sad", Shape(steps=20), state="failed", error=error, world_size=2)
    rankdeck = open_window()
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 1)
    rankdeck.window.runs.run_chosen.emit(runs_dir / "sad")
    outcome = rankdeck.window.outcome
    qtbot.waitUntil(lambda: outcome.title == "CPU 1: out of memory")
    assert outcome.text == "It needed 3 GB. Halve the micro-batch."
    log = rankdeck.window.tabs.log
    qtbot.waitUntil(lambda: log.source.count() == 4)
    outcome.show_log.click()
    assert rankdeck.window.tabs.currentWidget() is log and log.source.currentData().rank == 1


def test_a_live_run_is_found_when_the_window_opens(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    write_lines(runs_dir / "old", Shape(steps=10))
    store = write_lines(runs_dir / "live", Shape(steps=40))
    state = RunState("live", "live", "training", host=identity.own(), step=40, total_steps=80, devices=("cpu:0",))
    store.write_state(state)
    rankdeck = open_window()
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up)
    assert rankdeck.showing.run_dir == store.dir and rankdeck.data.series.rank(1).rows == 40
    actions = rankdeck.window.actions_
    assert actions.stop.isEnabled()
    assert not actions.start.isEnabled() and "live is using a selected device" in actions.start.toolTip()


def test_the_window_never_loads_torch() -> None:
    code = "import sys, app.main; print([m for m in ('torch', 'workers', 'yaml', 'asyncio') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.strip() == "[]"
