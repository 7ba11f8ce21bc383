"""The main window: top bar, runs at the left, pages in the middle, New run at the right or over them."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QMainWindow, QMenu, QStackedWidget, QWidget

from app.actions.actions import Actions
from app.run.outcome_card import OutcomeCard
from app.run.run_header import RunHeader
from app.run.run_page import RunPage
from app.run.run_summary import RunSummary
from app.run_tabs.run_tabs import RunTabs
from app.runs.runs_panel import RunsPanel
from app.style.icons import app_icon
from app.widgets.build import lay_column
from app.widgets.exposure import Exposure
from app.widgets.floating_notice import FloatingNotice
from app.widgets.ruled_splitter import RuledSplitter
from app.window.close_question import CloseQuestion
from app.window.desk import Desk
from app.window.top_bar import TopBar
from app.window.welcome import Welcome
from app.window.window_place import WindowPlace
from core.export import KINDS
from core.machine.devices.names import RankNames

if TYPE_CHECKING:
    from app.charts.plots_panel import PlotsPanel
    from app.draft.recipe_list import RecipeList
    from app.new_run.new_run_sheet import NewRunSheet
    from app.run.hero_figures import HeroFigure
    from app.runs.run_list import RunListModel
    from app.settings import Settings
    from app.shown_run.rank_log import RankLog
    from app.shown_run.run_data import RunData
    from core.machine.devices import DeviceSample
    from core.recipes.heroes import Hero

PANES: Final = (264, 1056)


class MainWindow(QMainWindow):
    """The main window. Its parts and actions emit intents; the `show_…` methods display events and state.

    Signals:
        stop_and_close_requested: The window is to be closed once the run was told to stop.
        plots_wanted: The page of a run is painted, and its charts are not made yet.
        uncovered: It was minimised or covered, and can be seen again.
    """

    stop_requested = Signal(bool)
    stop_and_close_requested = Signal()
    page_shown = Signal(object)
    closed = Signal()
    plots_wanted = Signal()
    plot_drawn = Signal()
    new_run_wanted = Signal()
    new_run_made = Signal()
    uncovered = Signal()

    def __init__(
        self, data: RunData, runs: RunListModel, log: RankLog, recipes: RecipeList, settings: Settings
    ) -> None:
        super().__init__()
        self._settings = settings
        self._live: list[str] = []
        self._may_close = False
        self.actions_ = Actions(self)
        self.runs = RunsPanel(runs, self.actions_.resume_file)
        self._data = data
        self._plots: PlotsPanel | None = None
        self._new_run: NewRunSheet | None = None
        self._unfilled: NewRunSheet | None = None
        self._recipes = recipes
        self._plot_settings: Mapping[str, Any] = {}
        self._names = RankNames()
        self._exposure = Exposure(self)
        self._make_parts(log)
        self.setWindowTitle("Rankdeck")
        self.setWindowIcon(app_icon())
        self._lay_out()
        self._connect()
        self.place.restore()
        self.show_run(None)
        # Not the search, whose ring would say that something is typed there.
        self.pages.setFocus()

    # --- building ----------------------------------------------------------------------------------------

    def _make_parts(self, log: RankLog) -> None:
        actions = self.actions_
        exports = QMenu("E&xport", self, toolTipsVisible=True)
        exports.addActions([actions.exports[kind] for kind in KINDS])
        more = QMenu(self, toolTipsVisible=True)
        more.addActions([actions.rename, actions.reload, actions.log, actions.folder, actions.copy_path])
        more.addSeparator()
        more.addActions([actions.compare, actions.doctor, actions.about])
        self.top_bar = TopBar(actions)
        self.header = RunHeader(actions, more, exports)
        self.outcome = OutcomeCard()
        self.tabs = RunTabs(log)
        self.run_page = RunPage(self.header, self.outcome, self.tabs)
        self.welcome = Welcome(actions.resume_file, actions.doctor)
        self._home: QWidget = self.welcome

    def _lay_out(self) -> None:
        self.pages = QStackedWidget()
        self.pages.addWidget(self.welcome)
        self.pages.addWidget(self.run_page)
        self.notice = FloatingNotice(self.pages)
        self._panes = RuledSplitter(Qt.Orientation.Horizontal, ruled=False)
        for pane in (self.runs, self.pages):
            self._panes.addWidget(pane)
        self._panes.setStretchFactor(1, 1)
        self._panes.setChildrenCollapsible(False)
        self._panes.setSizes(list(PANES))
        self.desk = Desk(self._panes)
        centre = QWidget()
        lay_column(centre, self.top_bar, self.desk, grow=self.desk)
        self.setCentralWidget(centre)
        self.place = WindowPlace(self, self._panes, self.desk, self._settings)

    def _connect(self) -> None:
        actions = self.actions_
        self.addActions([
            actions.stop, actions.resume, actions.resume_file, actions.reload, actions.log, actions.folder,
            actions.compare, actions.new_run, actions.palette, actions.settings, actions.help, actions.doctor,
            actions.find,
        ])  # fmt: skip
        # The list has an F2 of its own.
        actions.rename.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.run_page.addAction(actions.rename)
        actions.stop.triggered.connect(lambda: self.stop_requested.emit(actions.stop_is_now))
        self.runs.current_chosen.connect(lambda: self.show_page(self.run_page))
        actions.rename.triggered.connect(self.runs.rename_shown)
        actions.log.triggered.connect(lambda: self.show_log(None))
        actions.find.triggered.connect(self._find)
        actions.new_run.toggled.connect(self._on_new_run_toggled)
        self.desk.close_requested.connect(lambda: actions.new_run.setChecked(False))
        self.outcome.log_requested.connect(self.show_log)
        self.outcome.folder_requested.connect(actions.folder.trigger)
        self.run_page.plots_place.painted.connect(self.plots_wanted)
        self._exposure.uncovered.connect(self.uncovered)

    # --- pages -------------------------------------------------------------------------------------------

    def show_page(self, page: QWidget) -> None:
        """Brings a page to the front; a new one is kept in `pages` until it is dropped."""
        if page is not self.pages.currentWidget():
            if self.pages.indexOf(page) < 0:
                self.pages.addWidget(page)
            if self.focusWidget() is None or self.pages.isAncestorOf(self.focusWidget()):
                # Else Qt gives it to some button of the next page.
                self.pages.setFocus()
            self.pages.setCurrentWidget(page)
            self.notice.raise_()
            self.page_shown.emit(page)

    def show_home(self) -> None:
        """Closes the page in front: the run that is shown comes back, or the welcome page."""
        self.show_page(self._home)

    def drop_page(self, page: QWidget) -> None:
        self.pages.removeWidget(page)
        page.deleteLater()

    def show_log(self, name: str | None) -> None:
        """Brings a log of the shown run to the front ("rank1.log"; empty or None: the chosen one)."""
        self.show_page(self.run_page)
        self.tabs.show_log(name or None)

    # --- parts that are made once they are wanted: their imports would hold the window up ---------------------

    @property
    def is_seen(self) -> bool:
        """True if a person can see it, as far as the system tells."""
        return self._exposure.is_seen

    @property
    def has_new_run(self) -> bool:
        """True once New run is there; asking does not make it."""
        return self._new_run is not None

    def prepare_new_run(self) -> None:
        """Makes the first half of New run, as a turn by itself; `new_run` makes the rest."""
        if self._new_run is None and self._unfilled is None:
            self._unfilled = self._make_sheet()

    def _make_sheet(self) -> NewRunSheet:
        from app.new_run.new_run_sheet import NewRunSheet

        return NewRunSheet(self._recipes.recipes, self.actions_.start, self.desk.frame, is_filled=False)

    @property
    def new_run(self) -> NewRunSheet:
        if self._new_run is None:
            actions, settings = self.actions_, self._settings
            sheet, self._unfilled = self._unfilled or self._make_sheet(), None
            sheet.fill(str(settings.values("draft").get("recipe", "")))
            self._new_run = sheet
            # Its key works while the settings that it starts are in sight.
            sheet.addAction(actions.start)
            sheet.close_requested.connect(lambda: actions.new_run.setChecked(False))
            sheet.form.more.setChecked(settings.flag("more_shown", False))
            sheet.form.more.toggled.connect(functools.partial(settings.set_flag, "more_shown"))
            self.desk.put_sheet(sheet)
            self.new_run_made.emit()
            # Showing it for the first time is a turn by itself.
            if actions.new_run.isChecked():
                QTimer.singleShot(0, self, lambda: self._open_sheet(actions.new_run.isChecked()))
        return self._new_run

    @property
    def plots(self) -> PlotsPanel:
        """The charts, and with them their library; wanted once the window is painted."""
        if self._plots is None:
            from app.charts.plots_panel import PlotsPanel

            linecache.clearcache()  # 8 MiB of source text: see `Rankdeck.open`
            self._plots = PlotsPanel(self._data, self._settings, self._heroes_of)
            self._plots.apply_settings(self._plot_settings)
            self._plots.show_names(self._names)
            self._plots.drawn.connect(self.plot_drawn)
            self.run_page.show_plots(self._plots, self._plots.controls)
        return self._plots

    def _heroes_of(self, recipe: str) -> Sequence[Hero]:
        found = self._recipes.named(recipe)
        return () if found is None else found.heroes

    def apply_plot_settings(self, settings: Mapping[str, Any]) -> None:
        self._plot_settings = settings
        if self._plots is not None:
            self._plots.apply_settings(settings)

    def plot_settings(self) -> Mapping[str, Any]:
        """Return the person's choices for the plots, to be remembered."""
        return self._plot_settings if self._plots is None else self._plots.settings()

    def show_device_samples(self, samples: Sequence[DeviceSample]) -> None:
        if self._plots is not None:
            self._plots.show_samples(samples)

    # --- what has happened -------------------------------------------------------------------------------

    def show_run(self, run_dir: Path | None) -> None:
        """Shows another run, or the welcome where there is none."""
        self.notice.clear()
        self.outcome.forget()
        self.header.show_summary(RunSummary())
        self.header.show_figures(())
        self.runs.show_current(run_dir)
        self.setWindowTitle("Rankdeck" if run_dir is None else f"{run_dir.name} – Rankdeck")
        self._home = self.welcome if run_dir is None else self.run_page
        self.show_home()

    def show_summary(self, summary: RunSummary, name: str) -> None:
        self.header.show_name(name)
        self.header.show_summary(summary)
        self.actions_.show_resume(trains_further=summary.word == "finished")
        title = " – ".join(part for part in (" · ".join(filter(None, (name, summary.word))), "Rankdeck") if part)
        if title != self.windowTitle():
            self.setWindowTitle(title)

    def show_busy(self, is_busy: bool) -> None:
        """Says on the buttons that a run is being started or resumed."""
        self.actions_.start.setText("Starting…" if is_busy else "&Start")
        self.welcome.show_busy(is_busy)

    def show_figures(self, figures: Sequence[HeroFigure]) -> None:
        self.header.show_figures(figures)
        if self._plots is not None:
            self._plots.read_values()

    def show_names(self, names: RankNames) -> None:
        self._names = names
        if self._plots is not None:
            self._plots.show_names(names)
        self.tabs.show_names(names)

    def show_notes(self, notes: Sequence[str]) -> None:
        self.header.show_notes(notes)
        self.tabs.config.show_notes(notes)

    def set_live(self, names: Sequence[str]) -> None:
        """Takes the runs that are going: closing the window asks about them."""
        self._live = list(names)

    # --- intents -----------------------------------------------------------------------------------------

    def _on_new_run_toggled(self, on: bool) -> None:
        if self._new_run is not None:
            self._open_sheet(on)
        elif on:
            self.new_run_wanted.emit()

    def _open_sheet(self, on: bool) -> None:
        sheet, focus = self.new_run, self.focusWidget()
        had_focus = focus is not None and sheet.isAncestorOf(focus)
        self.desk.set_open(on)
        if on:
            sheet.recipe.setFocus(Qt.FocusReason.OtherFocusReason)
        elif had_focus:
            self.pages.setFocus(Qt.FocusReason.OtherFocusReason)

    def _find(self) -> None:
        """Goes to the filter of runs; from the log to its own search."""
        focus, log = self.focusWidget(), self.tabs.log
        if focus is not None and log.isAncestorOf(focus):
            log.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.runs.focus_filter()

    def come_forward(self) -> None:
        """Shows the window in front of others, also when it was minimised."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    # --- closing -----------------------------------------------------------------------------------------

    def close_now(self) -> None:
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Asks once when a run is going; the run does not depend on the window."""
        if not self._live or self._may_close:
            self.place.remember()
            self.closed.emit()
            event.accept()
            return
        event.ignore()
        if self.findChild(CloseQuestion) is not None:
            return
        question = CloseQuestion(self._live, self)
        question.keep_chosen.connect(self.close_now)
        question.stop_chosen.connect(self.stop_and_close_requested)
        question.open()
