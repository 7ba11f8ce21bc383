"""The compare view and the choice of runs, on real run folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.run_data.whole_run import read_series
from app.views.compare.compare_dialog import CompareDialog
from app.views.dialogs.choose_runs_dialog import ChooseRunsDialog
from app.views.plots.run_overlay import OverlaidRun
from core.compare.comparison import compare_runs
from core.config import RunConfig
from core.config.config_file import to_toml
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


@pytest.fixture
def dialog(tmp_path: Path, qtbot: QtBot) -> CompareDialog:
    stores = [write_lines(tmp_path / name, Shape(steps=60, eval_every=20), with_columns=True) for name in ("a", "b")]
    stores[1].run_toml.write_text(to_toml(RunConfig(lr=0.5)), encoding="utf-8")
    found = compare_runs(stores)
    runs = [OverlaidRun(label, read_series(store)) for label, store in zip(found.labels, stores, strict=True)]
    made = CompareDialog(found, runs, 8)
    qtbot.addWidget(made)
    made.show()
    return made


def test_charts_of_what_both_have_over_a_table_of_what_differs(dialog: CompareDialog) -> None:
    assert [frame.title.text() for frame in dialog.frames] == ["Loss", "Validation loss", "Throughput"]
    assert dialog.time_axis.extent == (1.0, 60.0)
    rows = dialog.table.rowCount()
    assert dialog.same.text().endswith("settings are the same.")
    assert dialog.view.columnSpan(0, 0) == 3
    dialog.all.click()
    assert dialog.table.rowCount() > rows + 40
    assert not dialog.same.isVisible()


def test_the_table_is_copied_as_it_is_shown(dialog: CompareDialog) -> None:
    dialog.copy_text.click()
    text = QGuiApplication.clipboard().text()
    assert "Learning rate" in text and "Seed" not in text
    dialog.all.click()
    dialog.copy_csv.click()
    assert "settings,seed,Seed,1234,1234" in QGuiApplication.clipboard().text()


def test_one_chart_can_have_all_the_room(dialog: CompareDialog) -> None:
    dialog.frames[1].enlarge.click()
    assert [frame.isVisible() for frame in dialog.frames] == [False, True, False]
    dialog.frames[1].enlarge.click()
    assert all(frame.isVisible() for frame in dialog.frames)


def test_every_button_has_a_name_and_works_by_keyboard(dialog: CompareDialog, qtbot: QtBot) -> None:
    for button in dialog.findChildren(QPushButton):
        assert button.text() and button.focusPolicy() & Qt.FocusPolicy.TabFocus
    with qtbot.waitSignal(dialog.refresh_requested):
        dialog.refresh.click()


def test_two_to_eight_runs_are_chosen(qtbot: QtBot) -> None:
    runs = [(Path(f"run{number}"), f"name {number}") for number in range(10)]
    choice = ChooseRunsDialog(runs, [Path("run3")])
    qtbot.addWidget(choice)
    choice.show()
    assert choice.folders() == [Path("run3")] and not choice.go.isEnabled()
    choice.list.item(0).setCheckState(Qt.CheckState.Checked)
    assert choice.go.isEnabled()
    choice.filter.setText("NAME 7")
    assert [row for row in range(10) if not choice.list.item(row).isHidden()] == [7]
    with qtbot.waitSignal(choice.chosen) as told:
        choice.go.click()
    assert told.args == [[Path("run0"), Path("run3")]]


def test_nine_runs_are_too_many(qtbot: QtBot) -> None:
    folders = [Path(f"run{number}") for number in range(9)]
    choice = ChooseRunsDialog([(folder, folder.name) for folder in folders], folders)
    qtbot.addWidget(choice)
    assert not choice.go.isEnabled()
    assert "9 selected" in choice.count.text()
