"""The left panel: the runs there are, pinned and live ones on top, each with its state as a sign."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QItemSelection, QPoint, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QWidget

from app.models.run_list import ROW, RunListModel
from app.views.run_list.run_delegate import RunDelegate
from app.views.widgets.build import bold_label, lay_column, named
from app.views.widgets.empty_note import WithNote
from app.views.widgets.notice_bar import NoticeBar

INVITATION: Final = (
    "No runs yet.\n\nPress Start to train a small GPT on Python's standard library. It takes two minutes and "
    "downloads nothing."
)
MIN_WIDTH: Final = 160


class RunsPanel(QWidget):
    """The list of runs, or an invitation while there is none.

    Signals:
        run_chosen: A run's folder.
        menu_requested: Where on the screen the menu of the run that is shown should open.
    """

    run_chosen = Signal(object)
    menu_requested = Signal(QPoint)

    def __init__(self, model: RunListModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.notice = NoticeBar()
        self.view = self._make_view()
        title = bold_label("Ru&ns", self.view)
        title.setContentsMargins(12, 8, 12, 4)
        self.page = WithNote(self.view, INVITATION)
        self.page.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.page.note.setContentsMargins(12, 8, 12, 12)
        lay_column(self, title, self.notice, self.page, grow=self.page)
        self.setMinimumWidth(MIN_WIDTH)
        for changed in (model.rowsInserted, model.rowsRemoved, model.modelReset):
            changed.connect(self._on_rows_changed)
        self._on_rows_changed()

    def _make_view(self) -> QListView:
        view = named(QListView(), "Runs")
        view.setModel(self._model)
        view.setItemDelegate(RunDelegate(view))
        view.setUniformItemSizes(True)
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.viewport().setAutoFillBackground(False)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setResizeMode(QListView.ResizeMode.Adjust)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setMouseTracking(True)
        view.selectionModel().selectionChanged.connect(self._on_selection_changed)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_requested)
        return view

    def show_current(self, path: Path | None) -> None:
        """Marks the run that is shown, without choosing it again."""
        with QSignalBlocker(self.view.selectionModel()):
            if path is None:
                self.view.clearSelection()
            for number, row in enumerate(self._model.rows()):
                if row.path == path:
                    self.view.setCurrentIndex(self._model.index(number, 0))
                    break
        self.view.viewport().update()

    def _on_rows_changed(self, *_: object) -> None:
        self.page.set_empty(not self._model.rowCount())

    def _on_selection_changed(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        for index in selected.indexes():
            self.run_chosen.emit(index.data(ROW).path)
            return

    def _on_menu_requested(self, place: QPoint) -> None:
        index = self.view.indexAt(place)
        if not index.isValid():
            return
        self.view.setCurrentIndex(index)  # which shows the run, if it is not the one shown
        self.menu_requested.emit(self.view.viewport().mapToGlobal(place))
