"""The table of a comparison: what differs, under headings, and what stands in its cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.compare.compare_table import CompareTableView
from core.compare.comparison import Comparison
from core.compare.results import Row

pytestmark = pytest.mark.windows
LOSS = Row("loss", "Last loss", (1.0, 2.0, 3.0), ("1", "2", "3"), (0,))
LR = Row("lr", "Learning rate", (0.1, 0.1, 0.2), ("0.1", "0.1", "0.2"))
SEED = Row("seed", "Seed", (1, 1, 1), ("1", "1", "1"))


@pytest.fixture
def table(qtbot: QtBot) -> CompareTableView:
    made = CompareTableView()
    qtbot.addWidget(made)
    made.show_comparison(Comparison((Path("a"), Path("b"), Path("c")), ("A", "B", "C"), (LOSS,), (LR, SEED)))
    return made


def texts(table: CompareTableView) -> list[list[str]]:
    rows = [[table.view.item(row, column) for column in range(4)] for row in range(table.view.rowCount())]
    return [[item.text() for item in row if item is not None] for row in rows]


def test_what_differs_stands_under_headings(table: CompareTableView) -> None:
    differing = [["Results"], ["Last loss", "1", "2", "3"], ["Settings"], ["Learning rate", "0.1", "0.1", "0.2"]]
    assert texts(table) == differing
    assert [table.view.columnSpan(row, 0) for row in range(4)] == [4, 1, 4, 1]
    assert [table.view.horizontalHeaderItem(column).text() for column in range(4)] == ["", "A", "B", "C"]
    table.all.click()
    assert texts(table) == [*differing, ["Seed", "1", "1", "1"]]


def test_settings_that_differ_are_tinted_and_the_best_result_is_bold(table: CompareTableView) -> None:
    tinted = [
        [table.view.item(row, column).background().style() != Qt.BrushStyle.NoBrush for column in range(4)]
        for row in (1, 3)
    ]
    assert tinted == [[False] * 4, [False, False, False, True]]
    best, other = table.view.item(1, 1), table.view.item(1, 2)
    assert best.font().bold() and not other.font().bold()
    assert best.data(Qt.ItemDataRole.AccessibleTextRole) == "A, Last loss: 1, best"


def test_new_values_keep_the_rows_where_they_are(table: CompareTableView, qtbot: QtBot) -> None:
    loss = replace(LOSS, values=(1.0, 2.0, 0.5), texts=("1", "2", "0.5"), best=(2,))
    with qtbot.assertNotEmitted(table.rows_changed):
        table.show_comparison(replace(table.comparison, results=(loss,)))
    assert texts(table)[1] == ["Last loss", "1", "2", "0.5"]
    with qtbot.waitSignal(table.rows_changed):
        table.show_comparison(replace(table.comparison, results=()))
