"""The list view of the runs: several can be chosen by ticks, mouse or keys, and a name is edited in its row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QToolTip

from app.runs.run_delegate import RunDelegate, tick_area
from app.runs.run_list import ROW, RunListModel
from app.runs.run_row import RunRow

TICK_TIP = "Tick several runs to compare, tag or remove them together"


class RunView(QListView):
    """Shows a `RunListModel`. One chosen row is the run that is shown; of several, none is opened.

    Signals:
        chosen: Folders of the chosen rows, after the user chose others.
        opened: The folder of a row on which Enter was pressed.
        removal_requested: Del was pressed.
    """

    chosen = Signal(object)
    opened = Signal(object)
    removal_requested = Signal()

    def __init__(self, model: RunListModel) -> None:
        super().__init__()
        self._model = model
        self._is_ticking = False
        self._is_model_changing = False
        self.rows_delegate = RunDelegate(self)
        # Before the view: a row that goes takes its selection with it, which the user has not chosen.
        model.rowsAboutToBeRemoved.connect(self._on_rows_leaving)
        self.setModel(model)
        model.rowsRemoved.connect(self._on_rows_left)
        self.setAccessibleName("Runs")
        self.setItemDelegate(self.rows_delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
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

    def rename(self, path: Path) -> None:
        number = self._model.row_number(path)
        if number is not None:
            self.edit(self._model.index(number))

    # --- mouse and keys ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._is_ticking = self._tick(event)
        if not self._is_ticking:
            super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._is_ticking = self._tick(event)
        if not self._is_ticking:
            super().mouseDoubleClickEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._is_ticking:
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._is_ticking:
            super().mouseReleaseEvent(event)
        self._is_ticking = False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens a run, Del removes; the rest is the list's own."""
        if self.state() == QAbstractItemView.State.EditingState:
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers() & ~_KEYPAD:
            if self.currentIndex().isValid():
                self.opened.emit(self.currentIndex().data(ROW).path)
        elif event.key() == Qt.Key.Key_Delete and not event.modifiers() & ~_KEYPAD:
            self.removal_requested.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """The menu key opens the menu of the current row, not of the one in the middle."""
        if isinstance(event, QContextMenuEvent) and event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.scrollTo(self.currentIndex())
            self.customContextMenuRequested.emit(self.visualRect(self.currentIndex()).center())
            return True
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self.indexAt(event.pos())
            if index.isValid() and tick_area(self.visualRect(index)).contains(event.pos()):
                QToolTip.showText(event.globalPos(), TICK_TIP, self.viewport())
                return True
        return super().viewportEvent(event)

    def _tick(self, event: QMouseEvent) -> bool:
        place = event.position().toPoint()
        index = self.indexAt(place)
        if (
            event.button() != Qt.MouseButton.LeftButton
            or event.modifiers() != Qt.KeyboardModifier.NoModifier
            or not index.isValid()
            or not tick_area(self.visualRect(index)).contains(place)
        ):
            return False
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.Toggle)
        return True

    # --- what the model does -----------------------------------------------------------------------------

    def _on_rows_leaving(self, *_: object) -> None:
        self._is_model_changing = True

    def _on_rows_left(self, *_: object) -> None:
        self._is_model_changing = False
        self._note_number()

    def _on_selection_changed(self, *_: object) -> None:
        self._note_number()
        if not self._is_model_changing:
            self.chosen.emit([row.path for row in self.chosen_rows()])

    def _note_number(self) -> None:
        self.rows_delegate.are_several_chosen = len(self.selectionModel().selectedIndexes()) > 1
        self.viewport().update()


_KEYPAD = Qt.KeyboardModifier.KeypadModifier
