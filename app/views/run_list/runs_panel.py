"""The left panel: the runs there are, pinned and live ones on top, each with its state as a sign; filter and order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QItemSelection, QPoint, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QActionGroup, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QMenu, QToolButton, QWidget

from app.models.run_list import ROW, RunListModel
from app.models.run_order import NEWEST, ORDERS
from app.views.run_list.run_delegate import RunDelegate
from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row, named, search_line
from app.views.widgets.empty_note import WithNote
from app.views.widgets.notice_bar import NoticeBar
from core.run_folder.record import OF_STATE
from core.run_folder.run_filter import parse_filter

INVITATION: Final = "No runs yet."
NONE_MATCHES: Final = "No run matches the filter.\n\nClear it to see all runs."
FILTER_HINT: Final = "Filter, e.g. state:failed lr>1e-4"
FILTER_HELP: Final = (
    "Words of a run's name, note or tags; NAME:TEXT, NAME=VALUE and NAME>NUMBER of its state and settings.\n"
    "All must match; ! before one means that it must not."
)
MIN_WIDTH: Final = 160


class RunsPanel(QWidget):
    """The list of runs, or an invitation while there is none.

    Signals:
        run_chosen: A run's folder.
        settings_wanted: The filter asks for runs' settings.
        menu_requested: Where on the screen the menu of the run that is shown should open.
    """

    run_chosen = Signal(object)
    settings_wanted = Signal()
    menu_requested = Signal(QPoint)

    def __init__(self, model: RunListModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._current: Path | None = None
        self.notice = NoticeBar()
        self.view = self._make_view()
        title = bold_label("Ru&ns", self.view)
        title.setContentsMargins(12, 8, 12, 4)
        self.page = WithNote(self.view, INVITATION)
        self.page.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.page.note.setContentsMargins(12, 8, 12, 12)
        self.filter = search_line(FILTER_HINT, "Filter the runs")
        self.filter.setToolTip(FILTER_HELP)
        self.filter.textChanged.connect(self._on_filter_changed)
        self.order = self._make_order_button()
        self.search = QWidget()
        lay_row(self.search, self.filter, self.order, spacing=4, margins=(8, 0, 8, 4), grow=self.filter)
        lay_column(self, title, self.search, self.notice, self.page, grow=self.page)
        # Not for the whole window: samples and log have a Ctrl+F of their own, and of two neither would come.
        find = QShortcut(QKeySequence.StandardKey.Find, self, self.filter.setFocus)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
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

    def _make_order_button(self) -> QToolButton:
        button = icon_button("sort", "Order of the runs")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu, group = QMenu(button), QActionGroup(button)
        for order, title in ORDERS.items():
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setChecked(order == NEWEST)
            action.triggered.connect(lambda _checked, order=order: self._model.set_order(order))
            group.addAction(action)
        button.setMenu(menu)
        return button

    def show_current(self, path: Path | None) -> None:
        """Marks the run that is shown, without choosing it again."""
        self._current = path
        with QSignalBlocker(self.view.selectionModel()):
            if path is None:
                self.view.clearSelection()
            for number, row in enumerate(self._model.rows()):
                if row.path == path:
                    self.view.setCurrentIndex(self._model.index(number, 0))
                    break
        self.view.viewport().update()

    def _on_rows_changed(self, *_: object) -> None:
        is_filtered = bool(self.filter.text().strip())
        self.search.setVisible(is_filtered or bool(self._model.entries()))
        self.page.set_empty(not self._model.rowCount(), NONE_MATCHES if is_filtered else INVITATION)

    def _on_filter_changed(self, text: str) -> None:
        terms = parse_filter(text)
        if any(term.name not in OF_STATE for term in terms if term.name):
            self.settings_wanted.emit()
        self._model.set_filter(terms)
        self._on_rows_changed()
        self.show_current(self._current)  # its row may have been hidden

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
