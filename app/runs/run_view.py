"""The list view of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView

from app.runs.run_delegate import RunDelegate
from app.runs.run_list import ROW, RunListModel
from app.runs.run_row import RunRow


class RunView(QListView):
    """Shows a `RunListModel`. One chosen row is the run that is shown; of several, none is opened.

    Signals:
        chosen: Folders of the chosen rows, after the user chose others.
        opened: The folder of a row on which Enter was pressed.
    """

    chosen = Signal(object)
    opened = Signal(object)
    removal_requested = Signal()

    def __init__(self, model: RunListModel) -> None:
        super().__init__()
        self._model = model
        self._is_model_changing = False
        self.rows_delegate = RunDelegate(self)
        self._before: tuple[list[Path], int] = ([], 0)
        model.modelAboutToBeReset.connect(self._on_reset_begun)
        self.setModel(model)
        model.modelReset.connect(self._on_reset)
        self.setAccessibleName("Runs")
        self.setItemDelegate(self.rows_delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.viewport().setAutoFillBackground(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)

    def chosen_rows(self) -> list[RunRow]:
        indexes = sorted(self.selectionModel().selectedIndexes(), key=lambda index: index.row())
        return [index.data(ROW) for index in indexes]

    def choose(self, paths: Sequence[Path]) -> None:
        """Chooses rows without a signal; those that are not shown are left out."""
        selection = QItemSelection()
        first = QModelIndex()
        for path in paths:
            number = self._model.row_number(path)
            if number is not None:
                index = self._model.index(number)
                selection.select(index, index)
                first = first if first.isValid() else index
        self._is_model_changing = True
        if first.isValid():
            self.setCurrentIndex(first)
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._is_model_changing = False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens a run, F2 renames it in its row, Del removes; the rest is the list's own."""
        key, is_editing = event.key(), self.state() == self.State.EditingState
        is_plain = not is_editing and not event.modifiers() & ~_KEYPAD  # the editor passes its Enter on
        if is_plain and key == Qt.Key.Key_Delete:
            self.removal_requested.emit()
        elif is_plain and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2):
            if self.currentIndex().isValid() and key == Qt.Key.Key_F2:
                self.edit(self.currentIndex())
            elif self.currentIndex().isValid():
                self.opened.emit(self.currentIndex().data(ROW).path)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Opens the menu of the current row with the menu key, not of the one in the middle."""
        if isinstance(event, QContextMenuEvent) and event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.scrollTo(self.currentIndex())
            self.customContextMenuRequested.emit(self.visualRect(self.currentIndex()).center())
            return True
        return super().event(event)

    def _on_reset_begun(self) -> None:
        self._before = [row.path for row in self.chosen_rows()], self.verticalScrollBar().value()

    def _on_reset(self) -> None:
        """Chooses the runs again that were chosen, wherever they stand now."""
        paths, place = self._before
        self.choose(paths)
        self.doItemsLayout()
        self.verticalScrollBar().setValue(place)

    def _on_selection_changed(self, *_: object) -> None:
        if not self._is_model_changing:
            self.chosen.emit([row.path for row in self.chosen_rows()])


_KEYPAD = Qt.KeyboardModifier.KeypadModifier
