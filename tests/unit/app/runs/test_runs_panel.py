"""The runs panel: choosing one or several, renaming, menu, filter, bin."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QInputDialog, QLineEdit, QMenu
from pytestqt.qtbot import QtBot

from app.runs.run_delegate import elided_detail
from app.runs.run_details import CurveRead, version_of
from app.runs.run_list import ROW, RunListModel
from app.runs.run_row import RunRow, detail_text
from app.runs.run_scanner import RunScanner
from app.runs.runs_panel import RunsPanel
from app.widgets.notice_bar import Step
from core.metrics.curve import MetricCurve
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = [
    pytest.mark.windows,
    # The offscreen platform has no menus of its own to raise.
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
]
LEFT = Qt.MouseButton.LeftButton
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def place(panel: RunsPanel, row: int) -> QPoint:
    return panel.view.visualRect(panel.view.model().index(row, 0)).center()


def click(qtbot: QtBot, panel: RunsPanel, row: int, modifier: Qt.KeyboardModifier | None = None) -> None:
    keys = modifier or Qt.KeyboardModifier.NoModifier
    qtbot.mouseClick(panel.view.viewport(), LEFT, keys, place(panel, row))


def chosen(panel: RunsPanel) -> list[str]:
    return [row.path.name for row in panel.view.chosen_rows()]


def menu_of(panel: RunsPanel, row: int) -> QMenu:
    panel.view.customContextMenuRequested.emit(place(panel, row))
    assert panel.menu is not None
    panel.menu.hide()
    return panel.menu


def entries(menu: QMenu) -> dict[str, bool]:
    return {a.text().replace("&", ""): a.isEnabled() for a in menu.actions() if not a.isSeparator()}


def trigger(menu: QMenu, text: str) -> None:
    next(a for a in menu.actions() if a.text().replace("&", "") == text).trigger()


def test_a_click_shows_a_run_and_several_rows_show_none(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    with qtbot.waitSignal(panel.run_chosen) as chose:
        click(qtbot, panel, 1)
    assert chose.args == [runs / "failed"]
    panel.show_current(runs / "failed")
    with qtbot.assertNotEmitted(panel.run_chosen):
        click(qtbot, panel, 3, CTRL)
        click(qtbot, panel, 1, SHIFT)
    assert len(chosen(panel)) == 3 and panel.totals.full_text == "3 selected"
    assert panel.compare.isVisible() and panel.compare.isEnabled()
    with qtbot.waitSignal(panel.compare_requested) as compared:
        qtbot.mouseClick(panel.compare, LEFT)
    assert compared.args[0] == [runs / name for name in chosen(panel)]


def test_the_shown_run_is_not_read_again_when_it_is_clicked(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "failed")
    with qtbot.assertNotEmitted(panel.run_chosen), qtbot.waitSignal(panel.current_chosen):
        click(qtbot, panel, 1)
    with qtbot.assertNotEmitted(panel.run_chosen), qtbot.waitSignal(panel.current_chosen):
        qtbot.keyClick(panel.view, Qt.Key.Key_Return)
    with qtbot.assertNotEmitted(panel.current_chosen):
        click(qtbot, panel, 2, CTRL)


def test_keys_choose_open_and_remove(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "failed")
    panel.view.setFocus()
    qtbot.keyClick(panel.view, Qt.Key.Key_Down, CTRL)
    assert chosen(panel) == ["failed"]
    qtbot.keyClick(panel.view, Qt.Key.Key_Space, CTRL)
    assert chosen(panel) == ["failed", "ppo"]
    with qtbot.waitSignal(panel.run_chosen) as opened:
        qtbot.keyClick(panel.view, Qt.Key.Key_Return)
    assert opened.args == [runs / "ppo"]
    with qtbot.waitSignal(panel.removal_requested) as removed:
        qtbot.keyClick(panel.view, Qt.Key.Key_Delete)
    assert removed.args[0] == [runs / "failed", runs / "ppo"]


def test_a_live_run_is_not_removed(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.view.choose((runs / "live", runs / "old"))
    panel.view.setFocus()
    with qtbot.assertNotEmitted(panel.removal_requested):
        qtbot.keyClick(panel.view, Qt.Key.Key_Delete)
    assert panel.notice.title == "A running run cannot be removed" and "Stop it first" in panel.notice.text
    menu = menu_of(panel, 0)
    assert not entries(menu)["Move to the recycle bin"]


def test_a_refresh_keeps_what_is_chosen(panel: RunsPanel, runs: Path) -> None:
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    panel.show_current(runs / "failed")
    panel.view.choose((runs / "failed", runs / "ppo"))
    write_notes(runs / "ppo", RunNotes(pinned=True))
    model.show(RunScanner(runs).scan())
    panel.show_current(runs / "failed")
    assert chosen(panel) == ["ppo", "failed"], "ppo is on top now"
    assert model.index(0).data(ROW).path.name == "ppo"


def test_a_filter_chooses_no_other_run(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "failed")
    with qtbot.assertNotEmitted(panel.run_chosen):
        panel.filter.setText("state:finished")
        assert chosen(panel) == [] and panel.totals.full_text == "2 of 4 runs"
        panel.filter.clear()
    assert chosen(panel) == ["failed"]


def name_editor(panel: RunsPanel, qtbot: QtBot) -> QLineEdit:
    qtbot.keyClick(panel.view, Qt.Key.Key_F2)
    return panel.view.findChildren(QLineEdit)[-1]


def test_a_name_is_typed_in_its_row(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "live")
    panel.view.setFocus()
    editor = name_editor(panel, qtbot)
    assert editor.selectedText() == editor.text() != "" and editor.geometry().top() < 20
    qtbot.keyClicks(editor, "a night")
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    model.show_value(runs / "live", 1.25)  # a step of the run, whose row changes
    with qtbot.assertNotEmitted(panel.current_chosen), qtbot.waitSignal(panel.edits.changed) as changed:
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert changed.args[0] == (runs / "live",) and changed.args[1](RunNotes()).name == "a night"


def test_only_another_name_renames(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "old")
    panel.view.setFocus()
    with qtbot.assertNotEmitted(panel.edits.changed):
        qtbot.keyClick(name_editor(panel, qtbot), Qt.Key.Key_Escape)
        qtbot.keyClick(name_editor(panel, qtbot), Qt.Key.Key_Return)
    panel.rename_shown()
    dialog = panel.findChildren(QInputDialog)[-1]
    dialog.setTextValue("night")
    with qtbot.waitSignal(panel.edits.changed) as changed:
        dialog.accept()
    folders, change = changed.args
    assert folders == (runs / "old",) and change(RunNotes(tags=("a",))) == RunNotes(name="night", tags=("a",))


def test_the_menu_of_one_run(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.show_current(runs / "failed")
    menu = menu_of(panel, 3)
    assert chosen(panel) == ["old"]
    assert list(entries(menu)) == [
        *("Open", "Resume…", "Rename", "Pin", "Tags…", "Note…", "Compare with the shown run", "Export"),
        *("Show in folder", "Copy path", "Copy id", "Copy settings to New run", "Move to the recycle bin"),
    ]
    assert all(entries(menu).values())
    letters = [a.text().split("&")[1][0].lower() for a in menu.actions() if "&" in a.text()]
    assert len(letters) == len(set(letters))
    trigger(menu, "Copy id")
    assert QGuiApplication.clipboard().text() == "old"
    for text, signal, arguments in (
        ("Compare with the shown run", panel.compare_requested, [[runs / "failed", runs / "old"]]),
        ("Copy settings to New run", panel.settings_copy_requested, [runs / "old"]),
        ("Resume…", panel.resume_requested, [runs / "old"]),
        ("Show in folder", panel.folder_requested, [runs / "old"]),
        ("Move to the recycle bin", panel.removal_requested, [[runs / "old"]]),
    ):
        with qtbot.waitSignal(signal) as emitted:
            trigger(menu, text)
        assert emitted.args == arguments


def test_the_menu_key_is_for_the_current_row(panel: RunsPanel, runs: Path) -> None:
    panel.show_current(runs / "ppo")
    place = panel.view.viewport().rect().bottomLeft()
    QApplication.sendEvent(panel.view, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, place))
    assert panel.menu is not None and chosen(panel) == ["ppo"]
    panel.menu.hide()
    trigger(panel.menu, "Copy id")
    assert QGuiApplication.clipboard().text() == "ppo"


def test_the_menu_of_several_runs(panel: RunsPanel, qtbot: QtBot, runs: Path) -> None:
    panel.view.choose((runs / "failed", runs / "old"))
    menu = menu_of(panel, 1)
    assert list(entries(menu)) == ["Pin", "Tags…", "Compare", "Move to the recycle bin"]
    with qtbot.waitSignal(panel.removal_requested) as removed:
        trigger(menu, "Move to the recycle bin")
    assert removed.args == [[runs / "failed", runs / "old"]]


def test_a_live_run_says_why_not(panel: RunsPanel, runs: Path) -> None:
    panel.show_current(runs / "live")
    menu = menu_of(panel, 0)
    off = {text for text, enabled in entries(menu).items() if not enabled}
    assert off == {"Resume…", "Compare", "Move to the recycle bin"}
    assert all("Unavailable" in a.toolTip() for a in menu.actions() if not a.isEnabled() and a.text())


def test_the_filter_says_what_is_wrong(panel: RunsPanel, qtbot: QtBot) -> None:
    hint = panel.filter_line.hint
    qtbot.keyClicks(panel.filter, "lr>")
    assert panel.view.model().rowCount() == 4, "a term without its value filters nothing"
    qtbot.waitUntil(hint.isVisible)
    assert hint.text() == "lr> needs a value, as in lr>1e-4."
    with qtbot.waitSignal(panel.settings_wanted):
        qtbot.keyClicks(panel.filter, "1")
    qtbot.waitUntil(lambda: not hint.isVisible())


def test_a_notice_lies_over_the_list_and_moves_nothing(panel: RunsPanel) -> None:
    before = panel.view.geometry(), panel.foot.geometry()
    panel.notice.say("info", "“a” is in the recycle bin")
    assert panel.notice.isVisible() and (panel.view.geometry(), panel.foot.geometry()) == before
    assert panel.notice.geometry().bottom() < panel.foot.geometry().top()
    panel.notice.say("error", "x", "y" * 3000, Step("Do", lambda: None))
    assert panel.notice.geometry().top() >= 0
    panel.notice.say_briefly("Path copied", "/runs/a")
    assert panel.notice.isVisible() and panel.notice._end.isActive()
    panel.notice.say("error", "The disk is full", "")
    assert not panel.notice._end.isActive(), "an error stays until it is read"


@pytest.mark.parametrize(
    ("going", "shown"), [("live", "failed"), ("old", "ppo"), ("failed ppo", "old"), ("ppo old", "failed")]
)
def test_the_next_run_is_the_nearest(panel: RunsPanel, runs: Path, going: str, shown: str) -> None:
    assert panel.next_run([runs / name for name in going.split()]) == runs / shown


def test_a_row_shows_its_curve_and_its_value(panel: RunsPanel) -> None:
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    row = model.index(2).data(ROW)
    plain = picture(panel)
    model.set_curve(CurveRead(row.path, version_of(row), MetricCurve((1.0, 3.0, 2.0, 9.0), 487.0)))
    assert picture(panel) != plain
    assert "Return 487" in model.index(2).data(Qt.ItemDataRole.AccessibleTextRole)


@pytest.mark.parametrize("values", [(1.0, 1.0), (-1.7e308, 1.7e308), (5e-324, 0.0, 5e-324)])
def test_a_curve_of_extreme_values_is_drawn(panel: RunsPanel, values: tuple[float, ...]) -> None:
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    row = model.index(0).data(ROW)
    plain = picture(panel)
    model.set_curve(CurveRead(row.path, version_of(row), MetricCurve(values, values[-1])))
    assert picture(panel) != plain


@pytest.mark.parametrize("width", [160, 240, 360])
def test_a_narrow_panel_holds_all_of_it(panel: RunsPanel, width: int, runs: Path) -> None:
    panel.view.choose((runs / "failed", runs / "old"))
    panel.resize(width, 400)
    QApplication.processEvents()
    assert panel.width() == width and panel.minimumSizeHint().width() <= 160
    assert panel.compare.geometry().right() <= width


def picture(panel: RunsPanel) -> QImage:
    QApplication.processEvents()
    return panel.view.viewport().grab().toImage()


def test_the_second_line_keeps_when_a_run_began(qapp: QApplication) -> None:
    metrics = QFontMetrics(qapp.font())
    values = {"mode": "independent", "world_size": 2, "created": 1_780_000_000.0, "updated": 1_780_000_250.0}
    run = RunState("r", "MiniGPT", "finished", **values)
    row = RunRow(RunRecord(RunEntry(Path("/runs/r"), run)))
    whole = detail_text(row.record)
    begun = whole.rpartition(" · ")[2]
    narrow = metrics.horizontalAdvance(whole) * 2 // 3
    assert elided_detail(row, metrics, 1000) == whole
    without = "parallel-independent × 2 · " + begun
    assert elided_detail(row, metrics, metrics.horizontalAdvance(whole) - 1) == without, "whole words, or none"
    shown = elided_detail(row, metrics, narrow)
    assert shown.startswith("para") and shown.endswith(f"… · {begun}") and metrics.horizontalAdvance(shown) <= narrow
    error = {"title": "CPU 1", "cause": "line 6 · a long reason why it could not be trained any further"}
    failed = RunRow(RunRecord(RunEntry(Path("/runs/r"), run.replace(state="failed", error=error))))
    assert elided_detail(failed, metrics, narrow).endswith("…"), "of a reason the beginning says most"
