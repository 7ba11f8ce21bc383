"""The command palette's list: what was found takes the place of what was found before, row by row."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QAbstractItemModelTester

from app.state.palette_entries import COMMAND, PaletteEntry
from app.views.window.palette_list import PaletteModel

pytestmark = pytest.mark.windows


def entries(*titles: str) -> list[PaletteEntry]:
    return [PaletteEntry(COMMAND, title, title) for title in titles]


def test_only_rows_that_are_drawn_otherwise_are_told_of() -> None:
    model = PaletteModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    told: list[int] = []
    model.dataChanged.connect(lambda first, _last: told.append(first.row()))
    stop, new, notes, docs = found = entries("Stop", "New run", "Notes", "Documentation")

    def shown(query: str, now: list[PaletteEntry]) -> list[int]:
        told.clear()
        model.show(now, query)
        assert [model.entry(row) for row in range(model.rowCount())] == now and model.query == query
        return list(told)

    assert shown("", found) == []
    assert shown("", list(found)) == []
    assert shown("n", [new, notes, docs]) == [0, 1, 2]
    assert shown("ne", [new]) == [0], "its second letter is bold too"
    assert shown("ne ", [new]) == []
    assert shown("", [new, stop, notes]) == [0], "rows that come are inserted"
    assert shown("x", []) == []
    assert tester.model() is model
