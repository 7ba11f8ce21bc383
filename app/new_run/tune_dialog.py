"""Tune dialog: the trials, and the fastest settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QLabel, QProgressBar, QTreeWidget, QTreeWidgetItem, QWidget

from app.style.fonts import tabular
from app.style.tones import tone
from app.widgets.build import muted_label, named
from app.widgets.buttons import PrimaryButton
from app.widgets.dialog import Dialog, Role
from core.errors import RankdeckError
from core.measure.tune.tuned import COLUMNS, Result

ROW_HEIGHT: Final = 24
_STEPS: Final = 1000
_LAST: Final = len(COLUMNS) - 1


class TuneDialog(Dialog):
    """A table that grows while settings are tried.

    Args:
        about: The introduction, as text.

    Signals:
        stop_requested: Trials are to end.
        use_requested: The settings found are to be filled in.
    """

    stop_requested = Signal()
    use_requested = Signal()

    def __init__(self, about: str, parent: QWidget | None = None) -> None:
        super().__init__("Tune", parent)
        self._is_going = True
        self.table = _make_table()
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Time that is over")
        self.doing = muted_label("Starting…")
        self.sentence = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sentence.hide()
        self.use = PrimaryButton("&Use these settings")
        self.buttons.addButton(self.use, Role.AcceptRole)
        self.use.hide()  # after it was added, which shows it
        self.stop = self.add_button("&Stop", Role.ActionRole)  # it does not close the dialog
        self.use.clicked.connect(self._on_use_clicked)
        self.stop.clicked.connect(self._on_stop_clicked)
        text = QLabel(about, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        parts = (self.notice, text, self.table, self.bar, self.doing, self.sentence)
        self.lay_out(*parts, grow=self.table, size=(920, 480))
        self.stop.setFocus()

    @property
    def is_going(self) -> bool:
        return self._is_going

    def show_progress(self, doing: str, share: float, results: Sequence[Result], best: Result | None) -> None:
        if self._is_going:
            self.doing.setText(f"{doing}…")
            self.bar.setValue(round(share * _STEPS))
            self._show_results(results, best)

    def _show_results(self, results: Sequence[Result], best: Result | None) -> None:
        while self.table.topLevelItemCount() < len(results):
            item = QTreeWidgetItem()
            item.setSizeHint(0, QSize(0, ROW_HEIGHT))
            self.table.addTopLevelItem(item)
        for number, result in enumerate(results):
            self._show_row(self.table.topLevelItem(number), result, is_best=result is best)
        if results:
            self.table.scrollToBottom()

    def _show_row(self, item: QTreeWidgetItem | None, result: Result, *, is_best: bool) -> None:
        assert item is not None
        font = tabular(self.table.font())
        font.setBold(is_best)
        for column, cell in enumerate(result.cells(is_best=is_best)):
            item.setText(column, cell)
            item.setToolTip(column, result.cause)
            side = Qt.AlignmentFlag.AlignLeft if column == _LAST else Qt.AlignmentFlag.AlignRight
            item.setTextAlignment(column, side | Qt.AlignmentFlag.AlignVCenter)
            item.setFont(column, font)
        palette = self.table.palette()
        colour = palette.color(palette.ColorRole.Text)
        if is_best or not result.is_measured:
            colour = tone(palette, "success" if is_best else "warning")
        item.setForeground(_LAST, colour)

    def show_result(self, text: str, results: Sequence[Result], best: Result | None, *, can_use: bool) -> None:
        """Show the result; `can_use`: it is better than the form's settings."""
        self._end()
        self._show_results(results, best)
        self.sentence.setText(text)
        self.sentence.show()
        self.use.setVisible(can_use)
        if can_use:
            self.use.setDefault(True)
            self.use.setFocus()

    def show_error(self, error: RankdeckError) -> None:
        self._end()
        self.notice.show_error(error)

    def reject(self) -> None:
        """Close, and stop trials that are going on."""
        if self._is_going:
            self.stop_requested.emit()
        super().reject()

    def _end(self) -> None:
        self._is_going = False
        self.bar.hide()
        self.doing.hide()
        self.stop.setText("&Close")
        self.stop.setEnabled(True)
        self.stop.setFocus()

    def _on_stop_clicked(self) -> None:
        if self._is_going:
            self.stop.setEnabled(False)  # until the processes have ended
            self.doing.setText("Stopping…")
            self.stop_requested.emit()
        else:
            self.reject()

    def _on_use_clicked(self) -> None:
        self.use_requested.emit()
        self.accept()


def _make_table() -> QTreeWidget:
    table = named(QTreeWidget(), "Settings that were tried")
    table.setHeaderLabels(list(COLUMNS))
    table.setRootIsDecorated(False)
    table.setUniformRowHeights(True)
    head = table.header()
    head.setStretchLastSection(True)
    for column in range(len(COLUMNS) - 1):
        head.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        table.headerItem().setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return table
