"""The main window: actions and state on top, runs left, plots and tabs in the middle, New run right."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QMenu, QSizePolicy, QToolBar, QToolButton, QVBoxLayout, QWidget

from app.models.rank_log import RankLog
from app.models.run_data import RunData
from app.models.run_list import RunListModel
from app.settings import Settings
from app.state.available_actions import AvailableActions
from app.state.run_outcome import RunOutcome, run_outcome
from app.state.run_summary import RunSummary
from app.views.new_run.new_run_sheet import NewRunSheet
from app.views.run_list.runs_panel import RunsPanel
from app.views.run_tabs.run_tabs import RunTabs
from app.views.style.icons import app_icon, icon
from app.views.widgets.build import icon_button, lay_column
from app.views.widgets.notice_bar import NoticeBar, Step
from app.views.widgets.ruled_splitter import RuledSplitter
from app.views.window.actions import Actions, explain
from app.views.window.close_question import CloseQuestion
from app.views.window.run_header import RunHeader
from app.views.window.welcome import Welcome
from core.machine.devices.names import RankNames
from core.recipes.manifest import Recipe
from core.run_folder.state import RunState

if TYPE_CHECKING:
    from app.views.plots.plots_panel import PlotsPanel

MIN_SIZE: Final = (1024, 640)
START_SIZE: Final = (1320, 840)
PANES: Final = (240, 760, 340)
HEIGHTS: Final = (520, 240)


class MainWindow(QMainWindow):
    """Everything a person sees. Its parts and actions emit intents; the `show_…` methods tell what has happened.

    Signals:
        stop_requested: True when it should end at once.
        stop_and_close_requested: The window is to be closed once the run was told to stop.
        closed: The window goes; what it held open can end.
        plot_drawn: The first plot was drawn.
    """

    stop_requested = Signal(bool)
    stop_and_close_requested = Signal()
    closed = Signal()
    plot_drawn = Signal()

    def __init__(
        self,
        data: RunData,
        runs: RunListModel,
        log: RankLog,
        recipes: Sequence[Recipe],
        settings: Settings,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._live: list[str] = []
        self._live_scripts = 0
        self._outcome: RunOutcome | None = None
        self._outcome_state = ""
        self._may_close = False
        self._stop_is_now = False
        self._sheet_width = PANES[2]
        self.actions_ = Actions(self)
        self.header = RunHeader()
        self.notice = NoticeBar()
        self.runs = RunsPanel(runs)
        self._data = data
        self._plots: PlotsPanel | None = None
        self._plots_place = PlotsPlace()
        self._plots_place.painted.connect(lambda: self.plots)
        self._plot_settings: Mapping[str, Any] = {}
        self._names = RankNames()
        self.welcome = Welcome(self.actions_.start)
        self.tabs = RunTabs(log)
        self.new_run = NewRunSheet(recipes)
        self.setWindowTitle("Rankdeck")
        self.setWindowIcon(app_icon())
        self._make_toolbar()
        self.run_menu = self._menu(self, self.actions_.folder)  # the run is the one that is shown by then
        self._lay_out()
        self._connect()
        self._restore()
        self.show_run(None)

    # --- building ----------------------------------------------------------------------------------------

    def _make_toolbar(self) -> None:
        bar = QToolBar("Actions")
        bar.setObjectName("actions")
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        for action in (self.actions_.start, self.actions_.stop, self.actions_.resume):
            bar.addWidget(ActionButton(action))
        bar.addSeparator()
        self.header.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        bar.addWidget(self.header)
        bar.addSeparator()
        bar.addWidget(ActionButton(self.actions_.new_run))
        more = icon_button("more", "More actions")
        more.setAutoRaise(True)
        more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        actions = self.actions_
        menu = self._menu(more, actions.replay, actions.log, actions.folder)
        menu.addSeparator()
        menu.addAction(actions.compare)
        menu.addActions([actions.settings, actions.help, actions.about])
        more.setMenu(menu)
        bar.addWidget(more)
        self.addToolBar(bar)

    def _menu(self, parent: QWidget, *actions: QAction) -> QMenu:
        """A menu of actions on the shown run, its exports last."""
        menu = QMenu(parent, toolTipsVisible=True)
        menu.addActions(actions)
        exports = QMenu("E&xport…", menu, toolTipsVisible=True)
        exports.addActions(list(self.actions_.exports.values()))
        menu.addMenu(exports)
        return menu

    def _lay_out(self) -> None:
        self._middle = RuledSplitter(Qt.Orientation.Vertical)
        self._middle.addWidget(self._plots_place)
        self._middle.addWidget(self.tabs)
        self._middle.setStretchFactor(0, 3)
        self._middle.setStretchFactor(1, 1)
        self._middle.setChildrenCollapsible(False)
        self._middle.setSizes(list(HEIGHTS))
        centre = QWidget()
        column = lay_column(centre, self.notice, self.welcome, self._middle, grow=self.welcome)
        column.setStretchFactor(self._middle, 1)
        self._panes = RuledSplitter(Qt.Orientation.Horizontal)
        for pane in (self.runs, centre, self.new_run):
            self._panes.addWidget(pane)
        self._panes.setStretchFactor(1, 1)
        self._panes.setChildrenCollapsible(False)
        self._panes.setSizes(list(PANES))
        self.setCentralWidget(self._panes)
        self.setMinimumSize(*MIN_SIZE)
        self.resize(*START_SIZE)

    def _connect(self) -> None:
        actions = self.actions_
        for action in (actions.replay, actions.log, actions.folder, actions.compare, actions.settings, actions.help):
            self.addAction(action)
        actions.stop.triggered.connect(self._on_stop_triggered)
        self.runs.menu_requested.connect(self.run_menu.popup)
        actions.log.triggered.connect(lambda: self.tabs.show_log())
        actions.new_run.toggled.connect(self._on_new_run_toggled)
        self.new_run.form.more_toggled.connect(functools.partial(self._settings.set_flag, "more_shown"))

    def _restore(self) -> None:
        self.restoreGeometry(self._settings.layout("window/geometry"))
        for name, splitter in (("panes", self._panes), ("middle", self._middle)):
            splitter.restoreState(self._settings.layout(f"splitters/{name}"))
        width = self._settings.values("window").get("sheet_width")
        self._sheet_width = width if isinstance(width, int) and width > 0 else PANES[2]
        self.actions_.new_run.setChecked(self._settings.flag("new_run_shown", True))
        self.new_run.form.more.setChecked(self._settings.flag("more_shown", False))

    def remember(self) -> None:
        """Writes sizes and folds into the settings."""
        if self.new_run.isVisible():
            self._sheet_width = self._panes.sizes()[2]
        self._settings.set_values("window", {"sheet_width": self._sheet_width})
        self._settings.set_layout("window/geometry", self.saveGeometry())
        self._settings.set_layout("splitters/panes", self._panes.saveState())
        self._settings.set_layout("splitters/middle", self._middle.saveState())

    # --- plots -------------------------------------------------------------------------------------------

    @property
    def plots(self) -> PlotsPanel:
        """The charts. Their library takes a third of the time to the window, so it is loaded once that is painted."""
        if self._plots is None:
            from app.views.plots.plots_panel import PlotsPanel

            linecache.clearcache()  # 8 MiB of source text: see `Rankdeck.open`
            self._plots = PlotsPanel(self._data, self._settings)
            self._plots.apply_settings(self._plot_settings)
            self._plots.show_names(self._names)
            self._plots.drawn.connect(self.plot_drawn)
            layout = self._plots_place.layout()
            if layout is not None:
                layout.addWidget(self._plots.controls, 0, Qt.AlignmentFlag.AlignRight)
                layout.addWidget(self._plots)
            self._plots.controls.show()
            self._plots.show()
        return self._plots

    def apply_plot_settings(self, settings: Mapping[str, Any]) -> None:
        """What `plot_settings` gave."""
        self._plot_settings = settings
        if self._plots is not None:
            self._plots.apply_settings(settings)

    def plot_settings(self) -> Mapping[str, Any]:
        """What a person chose for the plots, to be remembered."""
        return self._plot_settings if self._plots is None else self._plots.settings()

    # --- what has happened -------------------------------------------------------------------------------

    def show_actions(self, available: AvailableActions) -> None:
        """Enables what can be done, and says of the rest why not."""
        actions = self.actions_
        stop = actions.stop
        if available.stop_is_now != self._stop_is_now:
            self._stop_is_now = available.stop_is_now
            stop.setText("S&top now" if available.stop_is_now else "S&top")
            stop.setIcon(icon("stop-now" if available.stop_is_now else "stop"))
        stop.setProperty("description", available.stop_tip)
        explain(actions.start, available.start)
        explain(stop, available.stop)
        explain(actions.resume, available.resume)
        for action in (actions.replay, actions.folder, actions.log, *actions.exports.values()):
            explain(action, available.replay)

    def show_run(self, run_dir: Path | None) -> None:
        """Another run is shown, or none: then the welcome stands in the middle."""
        self.welcome.setVisible(run_dir is None)
        self._middle.setVisible(run_dir is not None)
        self.notice.clear()
        self._outcome, self._outcome_state = None, ""
        self.runs.show_current(run_dir)
        self.setWindowTitle("Rankdeck" if run_dir is None else f"{run_dir.name} – Rankdeck")
        if run_dir is None:
            self.header.show_summary(RunSummary())

    def show_summary(self, summary: RunSummary, name: str) -> None:
        """State and figures of the shown run, in the toolbar and the title."""
        self.header.show_summary(summary)
        title = f"{name} · {summary.word} – Rankdeck" if name else "Rankdeck"
        if title != self.windowTitle():
            self.setWindowTitle(title)

    def show_names(self, names: RankNames) -> None:
        """Names the devices of the shown run's ranks, in plots and tabs."""
        self._names = names
        if self._plots is not None:
            self._plots.show_names(names)
        self.tabs.show_names(names)

    def show_notes(self, notes: Sequence[str]) -> None:
        """How the shown run's devices share the work."""
        self.header.show_notes(notes)
        self.tabs.config.show_notes(notes)

    def show_outcome(self, state: RunState) -> None:
        """The bar over the plots: why a run failed or was interrupted, or that it fell back to one device.

        Said once: a bar that was dismissed stays away, and another error stays in sight until the run's state changes.
        """
        outcome = run_outcome(state)
        word, self._outcome_state = self._outcome_state, state.state
        if outcome == self._outcome and (outcome is not None or word == state.state):
            return
        self._outcome = outcome
        if outcome is None:
            self.notice.clear()
        elif outcome.resumes:
            self.notice.say(outcome.kind, outcome.title, outcome.text, Step("R&esume…", self.actions_.resume.trigger))
        else:
            step = Step("Show &log", lambda: self.tabs.show_log(outcome.log))
            self.notice.say(outcome.kind, outcome.title, outcome.text, step)

    def set_live(self, names: Sequence[str], scripts: int = 0) -> None:
        """The runs that are going, `scripts` of them the user's own: closing the window must ask about them."""
        self._live, self._live_scripts = list(names), scripts

    # --- intents -----------------------------------------------------------------------------------------

    def _on_stop_triggered(self) -> None:
        self.stop_requested.emit(self._stop_is_now)

    def _on_new_run_toggled(self, on: bool) -> None:
        sizes = self._panes.sizes()
        if not on and self.new_run.isVisible():
            self._sheet_width = sizes[2]
        self.new_run.setVisible(on)
        if on:
            self._panes.setSizes([sizes[0], max(1, sizes[1] + sizes[2] - self._sheet_width), self._sheet_width])
        self._settings.set_flag("new_run_shown", on)

    # --- closing -----------------------------------------------------------------------------------------

    def close_now(self) -> None:
        """Closes without asking."""
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Asks once when a run is going; the run does not depend on the window."""
        if not self._live or self._may_close:
            self.remember()
            self.closed.emit()
            event.accept()
            return
        event.ignore()
        if self.findChild(CloseQuestion) is not None:
            return
        question = CloseQuestion(self._live, self._live_scripts, self)
        question.keep_chosen.connect(self.close_now)
        question.stop_chosen.connect(self.stop_and_close_requested)
        question.open()


class PlotsPlace(QWidget):
    """Where the plots will be.

    Signals:
        painted: It was seen for the first time.
    """

    painted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._is_due = True
        QVBoxLayout(self).setContentsMargins(0, 0, 0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Asks for the plots once the window with its empty place is on the screen."""
        super().paintEvent(event)
        if self._is_due:
            self._is_due = False
            QTimer.singleShot(0, self, self.painted.emit)


class ActionButton(QToolButton):
    """A toolbar button with text and its mnemonic: QToolButton alone drops the mnemonic of its action."""

    def __init__(self, action: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDefaultAction(action)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        action.changed.connect(self._on_changed)
        self._on_changed()

    def _on_changed(self) -> None:
        action = self.defaultAction()
        self.setText(action.text())
        self.setAccessibleName(action.text().replace("&", ""))
        self.setAccessibleDescription(action.toolTip())
