"""The table of a comparison as a view sees it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor
from pytestqt.qtbot import QtBot

from app.compare.compare_table import CompareTable
from core.compare.comparison import Comparison
from core.compare.results import Row

pytestmark = pytest.mark.windows
ROLE = Qt.ItemDataRole


@pytest.fixture
def table(qtbot: QtBot) -> CompareTable:
    assert qtbot is not None
    loss = Row("loss", "Last loss", (1.0, 2.0, 3.0), ("1", "2", "3"), (0,))
    lr = Row("lr", "Learning rate", (0.1, 0.1, 0.2), ("0.1", "0.1", "0.2"))
    seed = Row("seed", "Seed", (1, 1, 1), ("1", "1", "1"))
    made = CompareTable()
    made.show_comparison(Comparison((Path("a"), Path("b"), Path("c")), ("A", "B", "C"), (loss,), (lr, seed)))
    made.tint = QBrush(QColor("red"))
    return made


def texts(table: CompareTable) -> list[list[str | None]]:
    return [
        [table.index(row, column).data() for column in range(table.columnCount())] for row in range(table.rowCount())
    ]


def test_what_differs_stands_under_headings(table: CompareTable) -> None:
    assert texts(table) == [
        ["Results", None, None, None],
        ["Last loss", "1", "2", "3"],
        ["Settings", None, None, None],
        ["Learning rate", "0.1", "0.1", "0.2"],
    ]
    assert table.headings() == [0, 2]
    assert table.headerData(2, Qt.Orientation.Horizontal) == "B"
    assert table.headerData(0, Qt.Orientation.Horizontal) is None
    table.show_all(True)
    assert texts(table)[-1] == ["Seed", "1", "1", "1"]


def test_settings_that_differ_are_tinted_and_the_best_result_is_bold(table: CompareTable) -> None:
    grounds = [[table.index(row, column).data(ROLE.BackgroundRole) for column in range(4)] for row in (1, 3)]
    assert grounds == [[None] * 4, [None, None, None, table.tint]]
    assert table.index(1, 1).data(ROLE.FontRole).bold()
    assert table.index(1, 2).data(ROLE.FontRole) is None
    assert table.index(1, 1).data(ROLE.AccessibleTextRole) == "A, Last loss: 1, best"


def test_new_values_keep_the_rows_where_they_are(table: CompareTable, qtbot: QtBot) -> None:
    loss = Row("loss", "Last loss", (1.0, 2.0, 0.5), ("1", "2", "0.5"), (2,))
    with qtbot.assertNotEmitted(table.modelReset), qtbot.waitSignal(table.dataChanged):
        table.show_comparison(replace(table.comparison, results=(loss,)))
    assert texts(table)[1] == ["Last loss", "1", "2", "0.5"]
    with qtbot.waitSignal(table.modelReset):
        table.show_comparison(replace(table.comparison, labels=("A", "B", "renamed")))
