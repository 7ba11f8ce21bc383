"""The benchmark page while its table grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from pytestqt.qtbot import QtBot

from app.bench.bench_page import BenchPage
from app.bench.bench_text import bench_news
from core.measure.bench.contenders import Kind
from core.measure.trial import TrialResult
from tests.helpers.window_fixture import OFFSCREEN_NOISE
from tests.unit.core.measure.bench.made import SUMS, WEAK, bench, steps

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def widths(page: BenchPage) -> list[int]:
    """Of the columns; the last one takes the rest."""
    return [page.table.columnWidth(column) for column in range(page.table.columnCount() - 1)]


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (Kind.WEAK, {0: WEAK[0][:1]}, WEAK),
        (Kind.STRONG, {0: WEAK[0][:1], 1: WEAK[1][:1]}, WEAK),
        (Kind.ACCUMULATION, {0: steps(0.1)}, {0: steps(0.1, 0.11, 0.12), 1: steps(0.2, 0.22, 0.24)}),
        (Kind.COMM, {0: []}, {0: [SUMS, SUMS]}),
    ],
)
def test_columns_keep_their_width_when_quartiles_come(
    kind: Kind, first: Mapping[int, Sequence[TrialResult]], last: Mapping[int, Sequence[TrialResult]], qtbot: QtBot
) -> None:
    page = BenchPage()
    qtbot.addWidget(page)
    page.resize(1100, 700)
    page.show()
    page.show_news(bench_news(bench(kind, first)))
    before = widths(page)
    page.show_news(bench_news(bench(kind, last), is_over=True))
    assert widths(page) == before
    cells = [cell for row in bench_news(bench(kind, last)).cells for cell in row]
    assert any(" to " in cell for cell in cells), "quartiles have come"


def test_a_wider_cell_widens_its_column_and_none_is_cut_off(qtbot: QtBot) -> None:
    page = BenchPage()
    qtbot.addWidget(page)
    page.show()
    page.show_news(bench_news(bench(Kind.WEAK, WEAK)))
    before = widths(page)
    page.show_news(bench_news(bench(Kind.WEAK, {0: steps(1e-7, 2000, 3), 1: WEAK[1]})))
    after = widths(page)
    assert after != before and all(now >= then for now, then in zip(after, before, strict=True))
    for column in range(page.table.columnCount() - 1):
        assert page.table.sizeHintForColumn(column) <= page.table.columnWidth(column)
