"""The left panel: list of runs, pinned and live ones on top, with filter, order and actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QGuiApplication, QPalette, QResizeEvent
from PySide6.QtWidgets import QInputDialog, QMenu, QPushButton, QToolButton, QWidget

from app.runs.filter_line import FilterLine
from app.runs.run_list import RunListModel
from app.runs.run_menu import MAX_COMPARED, MIN_COMPARED, RunIntents, compared_runs, removal_refusal, run_menu
from app.runs.run_order import BEST, NEWEST, ORDERS
from app.runs.run_row import RunRow
from app.runs.run_view import RunView
from app.widgets.build import bold_label, icon_button, lay_column, lay_row, named
from app.widgets.elided_label import ElidedLabel
from app.widgets.empty_note import WithNote
from app.widgets.floating_notice import FloatingNotice
from core.run_folder.notes import RunNotes
from core.run_folder.run_filter import Term

INVITATION: Final = "No runs yet."
NONE_MATCHES: Final = "No run matches the filter.\n\nClear it to see all runs."
MIN_WIDTH: Final = 160
NOTICE_MS: Final = 20_000
ASK_WIDTH: Final = 400


class RunsPanel(QWidget):
    """The list of runs, or an invitation while there is none.

    Signals:
        current_chosen: The run that is shown was clicked or opened: its page is wanted, in the place of another.
        notes_changed: Folders, and a function that changes the `RunNotes` of each.
        export_requested: A run's folder and one of `core.export.KINDS`.
    """

    run_chosen = Signal(object)
    current_chosen = Signal()
    settings_wanted = Signal()
    resume_requested = Signal(object)
    compare_requested = Signal(object)
    notes_changed = Signal(object, object)
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
        self.page = WithNote(self.view, INVITATION)
        self.page.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.page.note.setContentsMargins(12, 8, 12, 12)
        self.filter_line = FilterLine(model.records)
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
            if order == BEST:
                menu.aboutToShow.connect(lambda action=action: action.setText(self._model.best_title()))
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
        view.rename_requested.connect(self.edit_name)
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
        several = count >= MIN_COMPARED
        total = f"{runs:,} run{'' if runs == 1 else 's'}"
        listed = total if shown == runs else f"{shown:,} of {total}"
        self.totals.set_full_text(f"{count} selected" if several else listed if runs else "")
        self.compare.setVisible(several)
        self.compare.setEnabled(count <= MAX_COMPARED)
        self.compare.setToolTip(f"Compare the selected runs; up to {MAX_COMPARED} at once")

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
            self.current_chosen.emit()  # to show it again would read it from the start
        else:
            self.run_chosen.emit(path)

    def compared(self) -> tuple[list[Path], str]:
        """Return the runs to compare, and why they cannot be compared; empty where they can."""
        return compared_runs([row.path for row in self.view.chosen_rows()], self._current)

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
            self.view.setCurrentIndex(index)  # which shows the run, if it is not the one shown
        rows = self.view.chosen_rows()
        if self.menu is not None:
            self.menu.deleteLater()
        self.menu = run_menu(self.view, rows, self._current, self._intents())
        self.menu.popup(self.view.viewport().mapToGlobal(place))

    def _intents(self) -> RunIntents:
        return RunIntents(
            open=self._open,
            resume=self.resume_requested.emit,
            rename=self.edit_name,
            pin=self._pin,
            tag=self.edit_tags,
            note=self.edit_note,
            compare=self.compare_requested.emit,
            export=self.export_requested.emit,
            show_folder=self.folder_requested.emit,
            copy_text=QGuiApplication.clipboard().setText,
            copy_settings=self.settings_copy_requested.emit,
            remove=self.removal_requested.emit,
        )

    # --- names, pins, tags and notes -----------------------------------------------------------------------

    def rename_shown(self) -> None:
        if self._current is not None:
            self.edit_name(self._current)

    def edit_name(self, path: Path) -> None:
        record = self._model.record(path)
        if record is None:
            return
        before = record.notes.name or record.label

        def take(name: str) -> None:
            if name.strip() != before:
                self.notes_changed.emit((path,), lambda notes: notes.renamed(name))

        self._ask(f"Rename {record.label}", "Name (empty: the one it was started with)", before, take)

    def _pin(self, paths: Sequence[Path], pinned: bool) -> None:
        self.notes_changed.emit(paths, lambda notes: replace(notes, pinned=pinned))

    def edit_tags(self, rows: Sequence[RunRow]) -> None:
        """Asks for the tags that all of these runs have."""
        before = set.intersection(*(set(row.record.notes.tags) for row in rows))

        def take(text: str) -> None:
            after = set(text.lower().replace(",", " ").split())

            def change(notes: RunNotes) -> RunNotes:
                return notes.tagged(after - before, before - after)

            if after != before:
                self.notes_changed.emit([row.path for row in rows], change)

        title = rows[0].record.label if len(rows) == 1 else f"{len(rows)} runs"
        known = ", ".join(self._model.tags())
        label = "Tags, separated by spaces" + (f" (in use: {known})" if known else "")
        self._ask(f"Tags of {title}", label, " ".join(sorted(before)), take)

    def edit_note(self, row: RunRow) -> None:
        def take(text: str) -> None:
            if text.strip() != row.record.notes.note:
                self.notes_changed.emit((row.path,), lambda notes: notes.noted(text))

        title, hint = f"Note on {row.record.label}", "What was tried, and what came of it"
        self._ask(title, hint, row.record.notes.note, take, has_lines=True)

    def _ask(
        self, title: str, label: str, text: str, take: Callable[[str], object], *, has_lines: bool = False
    ) -> None:
        dialog = QInputDialog(self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(title)
        dialog.setLabelText(label)
        dialog.setOption(QInputDialog.InputDialogOption.UsePlainTextEditForTextInput, has_lines)
        dialog.setTextValue(text)
        dialog.textValueSelected.connect(take)
        dialog.resize(dialog.sizeHint().expandedTo(QSize(ASK_WIDTH, 0)))
        dialog.open()


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
