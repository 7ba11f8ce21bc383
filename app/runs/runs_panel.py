"""The left panel: list of runs, pinned and live ones on top, with filter, order and actions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QGuiApplication, QKeySequence, QPalette, QResizeEvent
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QWidget

from app.runs.filter_line import FilterLine
from app.runs.run_edits import RunEdits
from app.runs.run_list import RunListModel
from app.runs.run_order import NEWEST, ORDERS
from app.runs.run_row import RunRow, is_live
from app.runs.run_view import RunView
from app.style.icons import icon
from app.widgets.build import bold_label, icon_button, lay_column, lay_row, named
from app.widgets.elided_label import ElidedLabel
from app.widgets.empty_note import WithNote
from app.widgets.floating_notice import FloatingNotice
from core.export import KINDS
from core.run_folder.run_filter import Term

INVITATION: Final = "No runs yet."
NONE_MATCHES: Final = "No run matches the filter.\n\nClear it to see all runs."
MIN_WIDTH: Final = 160
NOTICE_MS: Final = 20_000
IS_LIVE: Final = "It is running. Stop it first."
# As of `core.compare`, which the window opens without.
LEAST_RUNS: Final = 2
MOST_RUNS: Final = 8


class RunsPanel(QWidget):
    """The list of runs, or an invitation while there is none.

    Signals:
        current_chosen: The run that is shown was clicked or opened: its page is wanted, in the place of another.
        export_requested: A run's folder and one of `core.export.KINDS`.
    """

    run_chosen = Signal(object)
    current_chosen = Signal()
    settings_wanted = Signal()
    resume_requested = Signal(object)
    compare_requested = Signal(object)
    export_requested = Signal(object, str)
    folder_requested = Signal(object)
    settings_copy_requested = Signal(object)
    removal_requested = Signal(object)

    def __init__(self, model: RunListModel, resume_file: QAction | None = None) -> None:
        super().__init__()
        self._model = model
        self._current: Path | None = None
        self.menu: QMenu | None = None
        self.view = RunView(model)
        self.edits = RunEdits(model, self)
        self.page = WithNote(self.view, INVITATION)
        self.page.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.page.note.setContentsMargins(12, 8, 12, 12)
        self.filter_line = FilterLine()
        self.filter = self.filter_line.line
        self.order = self._make_order_button()
        self.search = QWidget()
        row = lay_row(self.search, self.filter_line, self.order, spacing=4, margins=(8, 0, 8, 4), grow=self.filter_line)
        row.setAlignment(self.order, Qt.AlignmentFlag.AlignTop)
        self.order.setFixedHeight(self.filter.sizeHint().height())
        self.resume_file = None if resume_file is None else ResumeFileButton(resume_file)
        self._head = self._make_head()
        self.foot = self._make_foot()
        lay_column(self, self._head, self.search, self.page, self.foot, grow=self.page)
        self.notice = FloatingNotice(self, self.foot, NOTICE_MS)
        self.setMinimumWidth(MIN_WIDTH)
        self._connect()
        self._on_rows_changed()
        self._show_foot()

    def _make_head(self) -> QWidget:
        head = QWidget()
        self._title = bold_label("Ru&ns", self.view)
        row = lay_row(head, self._title, None, spacing=4, margins=(12, 4, 8, 4))
        if self.resume_file is not None:
            row.addWidget(self.resume_file)
        return head

    def _make_foot(self) -> QWidget:
        foot = QWidget()
        self.totals = ElidedLabel()
        self.totals.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.compare = QPushButton("Co&mpare")
        self.compare.clicked.connect(self._on_compare_clicked)
        lay_row(foot, self.totals, self.compare, spacing=8, margins=(12, 4, 8, 6), grow=self.totals)
        return foot

    def _make_order_button(self) -> QToolButton:
        button = icon_button("sort", "Order of the runs")
        button.setAutoRaise(True)
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

    def _connect(self) -> None:
        model, view = self._model, self.view
        model.modelReset.connect(self._on_rows_changed)
        model.arranged.connect(self._show_foot)
        self.filter_line.changed.connect(self._on_filter_changed)
        self.filter_line.settings_wanted.connect(self.settings_wanted)
        view.chosen.connect(self._on_chosen)
        view.selectionModel().selectionChanged.connect(self._show_foot)
        view.opened.connect(self._open)
        view.clicked.connect(self._on_clicked)
        view.removal_requested.connect(self._on_removal_requested)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._on_menu_requested)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.resume_file is not None:
            self.resume_file.fit(self.width() - self._title.sizeHint().width() - 24)

    # --- what is shown -----------------------------------------------------------------------------------

    def show_current(self, path: Path | None) -> None:
        """Marks the run that is shown without choosing it again; other chosen rows stay chosen while it stays."""
        is_other = path != self._current
        self._current = path
        self.view.rows_delegate.shown = path
        chosen = [row.path for row in self.view.chosen_rows()]
        if path is None:
            self.view.choose(())
        elif (is_other and path not in chosen) or not chosen:
            self.view.choose((path,))
        self.view.viewport().update()

    def focus_filter(self) -> None:
        if self.search.isVisible():
            self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.filter.selectAll()

    def next_run(self, going: Sequence[Path]) -> Path | None:
        """Return the run to show when some go: the nearest below them, else above; None when none is left."""
        paths = [row.path for row in self._model.rows()]
        left = [path for path in paths if path not in going]
        first = next((number for number, path in enumerate(paths) if path in going), 0)
        below = [path for path in paths[first:] if path in left]
        return below[0] if below else left[-1] if left else None

    def _show_foot(self, *_: object) -> None:
        count = len(self.view.selectionModel().selectedIndexes())
        runs, shown = len(self._model.records()), self._model.rowCount()
        several = count >= LEAST_RUNS
        total = f"{runs:,} run{'' if runs == 1 else 's'}"
        listed = total if shown == runs else f"{shown:,} of {total}"
        self.totals.set_full_text(f"{count} selected" if several else listed if runs else "")
        self.compare.setVisible(several)
        self.compare.setEnabled(count <= MOST_RUNS)
        self.compare.setToolTip(f"Compare the selected runs; up to {MOST_RUNS} at once")

    # --- what the user does ------------------------------------------------------------------------------

    def _on_rows_changed(self, *_: object) -> None:
        is_filtered = self.filter_line.is_filtering
        self.search.setVisible(is_filtered or bool(self.filter.text()) or bool(self._model.records()))
        self.page.set_empty(not self._model.rowCount(), NONE_MATCHES if is_filtered else INVITATION)

    def _on_filter_changed(self, terms: tuple[Term, ...]) -> None:
        self._model.set_filter(terms)
        self._on_rows_changed()
        self.show_current(self._current)  # its row may have been hidden

    def _on_chosen(self, paths: list[Path]) -> None:
        if len(paths) == 1 and paths[0] != self._current:
            self.run_chosen.emit(paths[0])

    def _on_clicked(self) -> None:
        rows = self.view.chosen_rows()
        if len(rows) == 1 and rows[0].path == self._current:
            self.current_chosen.emit()

    def _open(self, path: Path) -> None:
        if path == self._current:
            # To show it again would read it from the start.
            self.current_chosen.emit()
        else:
            self.run_chosen.emit(path)

    def compared(self) -> tuple[list[Path], str]:
        """Return the chosen runs, or a single one with the shown, and why they cannot be compared."""
        paths, shown = [row.path for row in self.view.chosen_rows()], self._current
        if len(paths) == 1 and shown is not None and shown != paths[0]:
            paths.insert(0, shown)
        if LEAST_RUNS <= len(paths) <= MOST_RUNS:
            return paths, ""
        return paths, f"Choose {LEAST_RUNS} to {MOST_RUNS} runs in the list with Ctrl+click or Shift+click."

    def rename_shown(self) -> None:
        if self._current is not None:
            self.edits.edit_name(self._current)

    def _on_compare_clicked(self) -> None:
        paths, why_not = self.compared()
        if not why_not:
            self.compare_requested.emit(paths)

    def _on_removal_requested(self) -> None:
        rows = self.view.chosen_rows()
        if not rows:
            return
        if why_not := removal_refusal(rows):
            self.notice.say("warning", "A running run cannot be removed", why_not)
        else:
            self.removal_requested.emit([row.path for row in rows])

    def _on_menu_requested(self, place: QPoint) -> None:
        index = self.view.indexAt(place)
        if not index.isValid():
            return
        if not self.view.selectionModel().isSelected(index):
            # Which shows the run, if it is not the one shown.
            self.view.setCurrentIndex(index)
        rows = self.view.chosen_rows()
        if self.menu is not None:
            self.menu.deleteLater()
        self.menu = self._make_menu(rows)
        self.menu.popup(self.view.viewport().mapToGlobal(place))

    def _make_menu(self, rows: Sequence[RunRow]) -> QMenu:
        """Make the menu of these rows; entries for one run only are left out for several."""
        menu, edits = QMenu(self.view, toolTipsVisible=True), self.edits
        paths, first = [row.path for row in rows], rows[0]
        path, is_one, copy = first.path, len(rows) == 1, QGuiApplication.clipboard().setText
        if is_one:
            menu.setDefaultAction(_entry(menu, "&Open", lambda: self._open(path), key="Return"))
            live = IS_LIVE if is_live(first.entry) else ""
            _entry(menu, "R&esume…", lambda: self.resume_requested.emit(path), sign="resume", why_not=live)
            menu.addSeparator()
            _entry(menu, "&Rename", lambda: self.view.edit(self.view.selectedIndexes()[0]), key="F2")
        is_pinned = all(row.record.notes.pinned for row in rows)
        _entry(menu, "Un&pin" if is_pinned else "&Pin", lambda: edits.pin(paths, not is_pinned), sign="pin")
        _entry(menu, "&Tags…", lambda: edits.edit_tags(rows))
        if is_one:
            _entry(menu, "&Note…", lambda: edits.edit_note(first))
        menu.addSeparator()
        compared, why_not = self.compared()
        title = "Co&mpare with the shown run" if is_one and not why_not else "Co&mpare"
        _entry(menu, title, lambda: self.compare_requested.emit(compared), why_not=why_not)
        if is_one:
            exports = menu.addMenu("E&xport")
            for kind, text in KINDS.items():
                act = functools.partial(self.export_requested.emit, path, kind)
                _entry(exports, f"{text[0].upper()}{text[1:]}", act)
            menu.addSeparator()
            _entry(menu, "Show in &folder", lambda: self.folder_requested.emit(path), sign="folder")
            _entry(menu, "&Copy path", lambda: copy(str(path)), sign="copy")
            _entry(menu, "Copy &id", lambda: copy(path.name))
            _entry(menu, "Copy &settings to New run", lambda: self.settings_copy_requested.emit(path))
        menu.addSeparator()
        remove, why_kept = functools.partial(self.removal_requested.emit, paths), removal_refusal(rows)
        _entry(menu, "Move to the recycle &bin", remove, key="Del", sign="bin", why_not=why_kept)
        return menu


def removal_refusal(rows: Sequence[RunRow]) -> str:
    """Why runs cannot be removed; empty where they can."""
    live = [row.record.label for row in rows if is_live(row.entry)]
    if not live:
        return ""
    return IS_LIVE if len(rows) == 1 else f"{live[0]} is running. Stop it first."


def _entry(
    menu: QMenu, text: str, act: Callable[[], object], *, key: str = "", sign: str = "", why_not: str = ""
) -> QAction:
    """Add an entry; its key is only shown, the list itself listens to it."""
    action = menu.addAction(icon(sign), text) if sign else menu.addAction(text)
    if key:
        action.setShortcut(QKeySequence(key))
        action.setShortcutVisibleInContextMenu(True)
    action.setEnabled(not why_not)
    action.setToolTip(f"Unavailable: {why_not}" if why_not else "")
    action.triggered.connect(lambda: act())
    return action


class ResumeFileButton(QToolButton):
    """*Resume from state file…*; its icon alone where there is no room for the text."""

    def __init__(self, action: QAction) -> None:
        super().__init__()
        action.setIconText(action.text().replace("&", ""))  # of its own, Qt takes the dots away
        self.setDefaultAction(action)
        self.setAutoRaise(True)
        named(self, action.text().replace("&", ""))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def fit(self, width: int) -> None:
        needed = self.fontMetrics().horizontalAdvance(self.defaultAction().iconText()) + 16
        style = Qt.ToolButtonStyle
        self.setToolButtonStyle(style.ToolButtonTextOnly if needed <= width else style.ToolButtonIconOnly)
