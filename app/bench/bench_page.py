"""Page that measures: which benchmark, Start and Stop, a table that grows, a chart with the target, the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QProgressBar,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.bench.bench_chart import BenchChartView
from app.bench.bench_text import BenchNews, kind_titles
from app.style.fonts import tabular
from app.widgets.build import icon_button, lay_column, lay_row, muted_label, named, page_title
from app.widgets.buttons import OutlinedButton, PrimaryButton
from app.widgets.card import Card
from app.widgets.elided_label import ElidedLabel
from app.widgets.notice_bar import NoticeBar
from app.widgets.page import Page
from app.widgets.steady import ComboBox
from core.errors import RankdeckError
from core.measure.bench.charts import BenchChart
from core.measure.bench.contenders import ABOUT, Kind

ROW_HEIGHT: Final = 24
# In sight without scrolling; the chart has the rest.
MOST_ROWS: Final = 7
_STEPS: Final = 1000
_CELL_MARGINS: Final = 16


class BenchPage(Page):
    """It measures nothing itself.

    Signals:
        kind_chosen: Another benchmark.
        start_requested: Measure.
        stop_requested: End it, with what was measured.
        folder_requested: Show the files.
    """

    kind_chosen = Signal()
    start_requested = Signal()
    stop_requested = Signal()
    folder_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Benchmark")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._is_going = False
        self._charts: tuple[BenchChart, ...] = ()
        self._columns: tuple[tuple[str, bool, str], ...] = ()
        self._make_head()
        self._make_results()
        self._lay_out()
        self._show_state()

    @property
    def kind(self) -> Kind:
        return Kind(self.kinds.currentData())

    @property
    def is_going(self) -> bool:
        return self._is_going

    # --- from outside ------------------------------------------------------------------------------------

    def show_about(self, text: str, why_not: str) -> None:
        """What would be measured, or why it cannot be."""
        self.about.setText(why_not or text)
        self.start.setEnabled(not self._is_going and not why_not)
        self.start.setToolTip(why_not or "Measure with real steps")

    def show_started(self) -> None:
        """It begins: an earlier result is gone."""
        self._is_going = True
        self.notice.clear()
        self.table.clear()
        self.text.setText("")
        self._show_charts(())
        self.show_progress("Starting", 0.0)
        had_focus = self.start.hasFocus()
        self._show_state()
        if had_focus:
            self.stop.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_progress(self, doing: str, share: float) -> None:
        if self._is_going and self.stop.isEnabled():
            self.doing.set_full_text(f"{doing}…")
            self.bar.setValue(round(share * _STEPS))

    def show_news(self, news: BenchNews) -> None:
        self._show_table(news)
        self._show_charts(news.charts)
        self.text.setText(news.text)
        self._show_state()

    def show_ended(self, *, has_folder: bool) -> None:
        had_focus = self.stop.hasFocus()
        self._is_going = False
        self._has_folder = has_folder
        self._show_state()
        if had_focus:
            self.start.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_error(self, error: RankdeckError) -> None:
        self.notice.show_error(error)

    # --- building ----------------------------------------------------------------------------------------

    def _make_head(self) -> None:
        self.title = page_title("Benchmark")
        self.close_button = icon_button("close", "Close the benchmark (Esc)", self.close_requested.emit, "Close")
        self.close_button.setAutoRaise(True)
        self.kinds = named(ComboBox(), "What is measured")
        for value, title in kind_titles():
            self.kinds.addItem(title, value)
        self.kinds.currentIndexChanged.connect(self._on_kind_chosen)
        self.meaning = muted_label(ABOUT[self.kind])
        self.about = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.start = PrimaryButton("&Start")
        self.start.clicked.connect(self.start_requested)
        self.stop = OutlinedButton("S&top")
        self.stop.setToolTip("Stop, and keep what was measured")
        self.stop.clicked.connect(self._on_stop_clicked)
        self.folder = OutlinedButton("Open f&older")
        self.folder.setToolTip("Open the folder with the table, the page and the pictures")
        self._has_folder = False
        self.folder.clicked.connect(self.folder_requested)
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Progress")
        self.bar.setFixedWidth(160)
        self.doing = ElidedLabel()

    def _make_results(self) -> None:
        self.notice = NoticeBar()
        self.text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.table = named(QTreeWidget(), "What was measured")
        self.table.setRootIsDecorated(False)
        self.table.setUniformRowHeights(True)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.table.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.charts = named(ComboBox(), "Chart")
        self.charts.currentIndexChanged.connect(self._on_chart_chosen)
        self.chart = BenchChartView()
        self.chart.setMinimumHeight(180)
        self.chart.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def _lay_out(self) -> None:
        head = Card()
        row = lay_row(None, self.title, None, self.close_button, spacing=8)
        self._going = QWidget()
        lay_row(self._going, self.bar, self.doing, spacing=12, grow=self.doing)
        buttons = lay_row(
            None, self.kinds, self.start, self.stop, self.folder, self._going, None, spacing=8, grow=self._going
        )
        lay_column(head, row, self.meaning, self.about, buttons, spacing=6, margins=(16, 8, 8, 10))
        self._results = Card()
        self._results.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        lay_column(self._results, self.table, self.text, spacing=8, margins=(16, 10, 12, 10))
        self._drawn = Card()
        choice = lay_row(None, self.charts, None, spacing=8)
        lay_column(self._drawn, choice, self.chart, spacing=4, margins=(8, 8, 8, 8), grow=self.chart)
        self._rest = QWidget()  # the room below the cards while there is no chart
        self._rest.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        lay_column(
            self, head, self.notice, self._results, self._drawn, self._rest, spacing=8, margins=(8, 8, 8, 8),
            grow=self._drawn,
        )  # fmt: skip

    # --- showing -----------------------------------------------------------------------------------------

    def _show_table(self, news: BenchNews) -> None:
        if news.columns != self._columns or not self.table.topLevelItemCount():
            self._columns = news.columns
            self.table.setColumnCount(len(news.columns))
            self.table.setHeaderLabels([title for title, *_ in news.columns])
            header, item = self.table.header(), self.table.headerItem()
            header.setStretchLastSection(True)
            for column, (_, is_text, usual) in enumerate(news.columns):
                item.setTextAlignment(column, _side(is_text))
                self.table.setColumnWidth(column, max(header.sectionSizeHint(column), self._cell_width(usual)))
        while self.table.topLevelItemCount() > len(news.cells):
            self.table.takeTopLevelItem(self.table.topLevelItemCount() - 1)
        for number, cells in enumerate(news.cells):
            if number == self.table.topLevelItemCount():
                self.table.addTopLevelItem(self._made_item())
            shown = self.table.topLevelItem(number)
            assert shown is not None
            for column, cell in enumerate(cells):
                shown.setText(column, cell)
                if (width := self._cell_width(cell)) > self.table.columnWidth(column):  # never narrower: it would jump
                    self.table.setColumnWidth(column, width)
        rows = min(MOST_ROWS, max(1, len(news.cells)))
        self.table.setFixedHeight(self.table.header().sizeHint().height() + rows * ROW_HEIGHT + 16)

    def _cell_width(self, text: str) -> int:
        return QFontMetrics(tabular(self.table.font())).horizontalAdvance(text) + _CELL_MARGINS

    def _made_item(self) -> QTreeWidgetItem:
        item, font = QTreeWidgetItem(), tabular(self.table.font())
        item.setSizeHint(0, QSize(0, ROW_HEIGHT))
        for column, (_, is_text, _) in enumerate(self._columns):
            item.setTextAlignment(column, _side(is_text))
            item.setFont(column, font)
        return item

    def _show_charts(self, charts: Sequence[BenchChart]) -> None:
        names = [chart.title for chart in charts]
        self._charts = tuple(charts)
        if names != [self.charts.itemText(place) for place in range(self.charts.count())]:
            self.charts.clear()
            self.charts.addItems(names)
        self.charts.setVisible(len(names) > 1)
        self._on_chart_chosen()

    def _show_state(self) -> None:
        has_rows = bool(self.table.topLevelItemCount())
        self.kinds.setEnabled(not self._is_going)
        self.start.setVisible(not self._is_going)
        self.stop.setVisible(self._is_going)
        self.stop.setEnabled(self._is_going)
        self.folder.setVisible(self._has_folder and not self._is_going)
        self._going.setVisible(self._is_going)
        self._results.setVisible(has_rows)
        self.text.setVisible(bool(self.text.text()))
        self._drawn.setVisible(bool(self._charts))
        self._rest.setVisible(not self._charts)

    # --- what the user does ------------------------------------------------------------------------------

    def _on_kind_chosen(self) -> None:
        self.meaning.setText(ABOUT[self.kind])
        self.kind_chosen.emit()

    def _on_chart_chosen(self) -> None:
        place = self.charts.currentIndex()
        self.chart.show_chart(self._charts[place] if 0 <= place < len(self._charts) else None)

    def _on_stop_clicked(self) -> None:
        self.stop.setEnabled(False)  # until what runs has ended
        self.doing.set_full_text("Stopping…")
        self.stop_requested.emit()


def _side(is_text: bool) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if is_text else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
