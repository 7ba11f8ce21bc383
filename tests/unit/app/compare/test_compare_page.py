"""The compare page, on real run folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QStackedWidget
from pytestqt.qtbot import QtBot

from app.compare.compare_page import ComparePage
from app.compare.run_overlay import OverlaidRun
from app.compare.whole_run import RunReader
from core.compare.comparison import compare_runs
from core.config import RunConfig
from core.config.config_file import to_toml
from core.errors import RankdeckError
from core.run_folder.store import RunStore
from tests.helpers.settings_file import settings_in
from tests.helpers.synthetic_run import Shape, make_run, write_events, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
Open = Callable[..., ComparePage]


@pytest.fixture
def open_page(tmp_path: Path, qtbot: QtBot) -> Open:
    def make(*stores: RunStore) -> ComparePage:
        page = ComparePage(len(stores), 8, settings_in(tmp_path / "settings.ini"))
        qtbot.addWidget(page)
        page.resize(1100, 760)
        page.show()
        found = compare_runs(stores)
        pairs = zip(found.labels, stores, strict=True)
        page.show_runs(found, [OverlaidRun(label, RunReader(store).open()) for label, store in pairs])
        QApplication.processEvents()
        return page

    return make


@pytest.fixture
def page(tmp_path: Path, open_page: Open) -> ComparePage:
    stores = [write_lines(tmp_path / name, Shape(steps=60, eval_every=20), with_columns=True) for name in ("a", "b")]
    stores[1].run_toml.write_text(to_toml(RunConfig(lr=0.5)), encoding="utf-8")
    return open_page(*stores)


def titles(page: ComparePage) -> list[str]:
    return [page.cards.title(key) for key in page.cards.shown]


def test_a_card_for_each_metric_over_a_table_of_what_differs(page: ComparePage) -> None:
    assert titles(page)[:5] == ["Loss", "Validation loss", "Throughput", "Learning rate", "Step time"]
    assert page.time_axis.extent == (1.0, 60.0)
    assert page.about.text() == "2 runs, mean over devices"
    rows, table = page.table.view.rowCount(), page.table
    assert table.same.text().endswith("settings are the same.")
    assert table.view.columnSpan(0, 0) == 3
    table.all.click()
    assert table.view.rowCount() > rows + 40
    assert not table.same.isVisible()


def test_metrics_of_one_run_alone_are_shown_too(tmp_path: Path, open_page: Open) -> None:
    lines = [{"event": "step", "ts": 10.0 + n, "rank": 0, "step": n, "reward": 1.0 * n} for n in range(1, 9)]
    script = write_events(make_run(tmp_path / "s", recipe="script"), lines)
    page = open_page(script, write_events(make_run(tmp_path / "e"), ()))
    assert titles(page) == ["Reward"]
    page.set_axis("time")
    assert page.time_axis.extent == (0.0, 7.0)


def test_runs_without_a_metric_have_a_sentence_in_place_of_charts(tmp_path: Path, open_page: Open) -> None:
    page = open_page(RunStore(tmp_path / "a"), RunStore(tmp_path / "b"))
    assert titles(page) == []
    assert page.cards.grid.empty.text() == "None of these runs has reported a metric yet."
    page.set_axis("time")
    page.show_failure(RankdeckError("Cause.", "Next.", title="Title"))
    assert page.notes.text() == "Title.\nCause.\nNext."


def test_time_is_counted_from_each_start(page: ComparePage) -> None:
    page.axis_box.setCurrentIndex(1)
    page.axis_box.axis_chosen.emit("time")
    low, high = page.time_axis.extent
    assert low == 0.0 and 2.9 < high < 10.0
    assert [run.label for run in page.runs] == ["a", "b"]
    assert page.cards.frames["tokens_per_s"].unit.text() == "tokens per second, all devices"


def test_a_click_in_a_legend_hides_a_run_in_every_chart(page: ComparePage) -> None:
    frame = page.cards.frames["loss"]
    frame.entry_chosen.emit("run 1", False)
    assert [entry.is_hidden for chart in page.charts()[:3] for entry in chart.legend()] == [False, True] * 3
    frame.entry_chosen.emit("run 1", True)
    assert [entry.is_hidden for entry in page.charts()[0].legend()] == [True, False]


def test_log_and_smoothing_reach_the_charts(page: ComparePage) -> None:
    page.log_box.click()
    assert [page.cards.frames[key].chart.is_log for key in ("loss", "val_loss", "tokens_per_s")] == [True, True, False]
    layers = len(page.charts()[0].layers)
    page.smoothing.slider.setValue(0)
    assert len(page.charts()[0].layers) < layers


def test_the_crosshairs_table_counts_the_runs_that_have_no_room(tmp_path: Path, open_page: Open) -> None:
    stores = [write_lines(tmp_path / f"run{n}", Shape(steps=30), with_columns=True) for n in range(8)]
    page = open_page(*stores)
    chart = page.charts()[0]
    chart._table_at = chart.plot_area().center()
    page.time_axis.set_cursor(15.0)
    assert 1 <= len(chart.table.rows) < 8
    assert chart.table.geometry().bottom() <= chart.height()


def test_the_table_is_copied_as_it_is_shown(page: ComparePage, qtbot: QtBot) -> None:
    page.copy.click()
    text = QGuiApplication.clipboard().text()
    assert "Learning rate\t" in text and "Seed" not in text
    page.table.all.click()
    qtbot.keyClick(page, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert "Seed\t1234\t1234" in QGuiApplication.clipboard().text()


def test_escape_closes(page: ComparePage, qtbot: QtBot) -> None:
    for widget in (page, page.table.view, page.charts()[0]):
        with qtbot.waitSignal(page.close_requested):
            qtbot.keyClick(widget, Qt.Key.Key_Escape)
    with qtbot.waitSignal(page.close_requested):
        page.close_button.click()


def test_everything_has_a_name_and_is_reached_by_keyboard(page: ComparePage) -> None:
    for button in page.findChildren(QAbstractButton):
        if button.isVisible() and not button.objectName().startswith("qt_"):
            assert button.text() or button.accessibleName(), button
            assert button.focusPolicy() & Qt.FocusPolicy.TabFocus, button.text()
    assert page.table.view.accessibleName() and page.accessibleName()


def test_no_two_mnemonics_are_the_same(page: ComparePage) -> None:
    texts = [button.text() for button in page.findChildren(QAbstractButton) if button.isVisible()]
    texts += [label.text() for label in page.findChildren(QLabel) if label.buddy() is not None]
    letters = [letter for text in texts if (letter := QKeySequence.mnemonic(text).toString())]
    assert len(letters) > 4 and len(letters) == len(set(letters)), letters


def test_it_fits_a_small_window(page: ComparePage, qtbot: QtBot) -> None:
    host = QStackedWidget()
    qtbot.addWidget(host)
    host.addWidget(page)
    page.setMinimumSize(0, 0)  # while it was a window, its layout had set one
    host.resize(620, 460)
    host.show()
    QApplication.processEvents()
    assert host.size() == page.size() == QSize(620, 460)
    assert page.table.view.height() > 60
    for control in (page.close_button, page.fit_button, page.cards_button):
        assert page.rect().contains(control.rect().translated(control.mapTo(page, QPoint())))
    page.setParent(None)  # each is closed for itself
