"""The composition root: makes models, views and controllers, and connects them."""

from __future__ import annotations

import functools
import importlib
import linecache
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.compare.compare_controller import CompareController
from app.devices.device_table import DeviceTable, monitor_for
from app.draft.recipe_list import RecipeList
from app.launch.resume_controller import ResumeController
from app.launch.run_controller import RunController
from app.machine.environment_controller import EnvironmentController
from app.machine.machine_check_controller import MachineCheckController
from app.machines.machines_controller import MachinesController
from app.outside.app_identity import set_app_id, set_desktop_name
from app.outside.notifications_controller import NotificationsController
from app.palette.palette_controller import PaletteController
from app.preferences.preferences_controller import PreferencesController
from app.preferences.updates_controller import UpdatesController
from app.run.deferred_start_controller import DeferredStartController
from app.run.launch_controller import LaunchController
from app.run.run_files_controller import RunFilesController
from app.runs.run_list import RunList
from app.runs.run_notes_controller import RunNotesController
from app.runs.run_removal_controller import RunRemovalController
from app.settings import Settings, user_settings
from app.shown_run.ledger_data import LedgerData
from app.shown_run.rank_log import RankLog
from app.shown_run.run_data import RunData
from app.shown_run.shown_run_controller import ShownRunController
from app.single_instance import SingleInstance, run_to_show
from app.style.theme import Theme
from app.threads.background import Operation, OperationRunner, unexpected
from app.threads.garbage import GarbageCollection
from app.window.main_window import MainWindow
from app.window.run_display_controller import RunDisplayController
from app.window.welcome_controller import WelcomeController
from core import __version__
from core.paths import default_runs_dir

if TYPE_CHECKING:
    from app.draft.draft_checks_controller import DraftChecksController
    from app.new_run.draft_saving_controller import DraftSavingController
    from app.new_run.new_run_controller import NewRunController
    from app.run_data.run_follower import Connection
    from core.run_folder.store import RunStore

PLOTS: Final = ("app.charts.plots_panel",)
NEW_RUN: Final = (
    "app.draft.draft_checks_controller",
    "app.new_run.draft_saving_controller",
    "app.new_run.new_run_controller",
    "app.new_run.new_run_sheet",
)
# Modules whose import takes longer than a person should wait for an answer of the window.
COMPARE: Final = ("app.compare.compare_page", *PLOTS)
_log = logging.getLogger(__name__)


class Rankdeck(QObject):
    """The application's parts. `open` shows the window; closing it, or `close`, ends every thread."""

    def __init__(self, settings: Settings, runs_dir: Path) -> None:
        super().__init__()
        self.settings = settings
        self.runs_dir = runs_dir
        self.runner = OperationRunner(self)
        self._make_models()
        self._make_operations()
        self.window = MainWindow(self.data, self.runs.model, self.log, self.recipes, settings)
        self._new_run: NewRunController | None = None
        self._draft_saving: DraftSavingController | None = None
        self.window.new_run_wanted.connect(lambda: self._import_then(NEW_RUN, self._make_sheet))
        self.window.new_run_made.connect(self._make_new_run)
        self.window.plots_wanted.connect(lambda: self._import_then(PLOTS, lambda: self.window.plots))
        self._make_controllers()
        self.window.closed.connect(self.close)

    def _make_models(self) -> None:
        self.data = RunData(_connect, self)
        self.runs = RunList(self)
        self.table = DeviceTable(monitor_for, self)
        self.ledger = LedgerData(self)
        self.log = RankLog(self)
        self.recipes = RecipeList(self)

    def _make_operations(self) -> None:
        self.launching = LaunchController(self.runner, self.runs_dir, self)
        self.showing = ShownRunController(self.runner, self.data, self.ledger, self.log, self.settings, self)
        self.runs.listed.connect(self.showing.on_listed)

    def _make_controllers(self) -> None:
        window, table, data, runs, showing = self.window, self.table, self.data, self.runs, self.showing
        self.display = RunDisplayController(
            window, data, runs, table, self.ledger, showing, self.launching,
            self.recipes, self.runner, self,
        )  # fmt: skip
        self.control = RunController(
            window, self.launching, lambda: self.drafting, lambda error: self.new_run.install_step(error), runs,
            showing, self.display, self,
        )  # fmt: skip
        self.resuming = ResumeController(
            window, self.launching, self.control.stop_run, table, runs, showing, self.display, self
        )
        self.beginning = WelcomeController(
            window, self.launching, self.table, self.runner, runs, self._offer_fix, self.runs_dir, self
        )
        self.organising = RunNotesController(window.runs, runs, showing, self.display.copy_settings, self.runner, self)
        self.removal = RunRemovalController(window.runs, runs, showing, self.runner, self)
        self.files = RunFilesController(
            window.actions_, window.notice, window.runs, window.outcome, showing, self.runner, self
        )
        self.comparing = CompareController(window, self.runner, self.settings, self)
        self.updating = UpdatesController(window, self.settings, self)
        self.preferences = PreferencesController(window, self.settings, self.runs_dir, self.updating, self.runner, self)
        self.machine_check = MachineCheckController(
            window, self.runner, self.preferences, self.settings, self.runs_dir, self._offer_fix, self
        )
        self.machines = MachinesController(window, self.runs_dir, self)
        self.machines.failed.connect(window.notice.show_error)
        self.environment = EnvironmentController(window, self.runner, self)
        self.environment.made.connect(self._on_environment_made)
        self.palette = PaletteController(window, runs.model, showing, self)
        self.notifications = NotificationsController(window, runs, showing, self.settings, self.runner, self)
        self.preferences.flag_changed.connect(self.notifications.show_status)
        self.deferred = DeferredStartController(window.plot_drawn, data, runs, showing, self)
        self.deferred.due.connect(lambda: self._import_then(NEW_RUN, self._open_the_rest))
        self.deferred.due.connect(self.updating.open)

    def _offer_fix(self, fix: str) -> None:
        """Offer to install a package that the check of this machine, or the first page, found missing."""
        self._import_then(NEW_RUN, lambda: self.new_run.offer_fix(fix))

    def _import_then(self, modules: Sequence[str], act: Callable[[], object]) -> None:
        """Import modules in a thread, so that the window stays responsive, then call `act`."""

        def work() -> None:
            for name in modules:
                importlib.import_module(name)

        def done(_: None) -> None:
            act()

        self.runner.run(Operation(work, done, self.window.notice.show_error))

    def _make_new_run(self) -> None:
        """Make the sheet's controllers, and show its settings as they were left."""
        from app.new_run.draft_saving_controller import DraftSavingController
        from app.new_run.new_run_controller import NewRunController

        self._new_run = NewRunController(
            self.window.new_run, self.drafting, self.runner, self.table, self.recipes, self.data, self
        )
        self._draft_saving = DraftSavingController(self.window.new_run, self.settings, self)
        self._draft_saving.open()
        self.drafting.checked.connect(self.control.show_actions)
        self.control.show_actions()

    @functools.cached_property
    def drafting(self) -> DraftChecksController:
        """Checks of New run's draft, made with the sheet: the window opens without."""
        from app.draft.draft_checks_controller import DraftChecksController

        return DraftChecksController(self.runner, self.runs_dir, self)

    @property
    def new_run(self) -> NewRunController:
        """The sheet's controller, made with the sheet when either is wanted first."""
        sheet = self.window.new_run
        assert self._new_run is not None, sheet
        return self._new_run

    def open(self) -> None:
        """Show the window and the run that was shown last; devices, recipes and data are read after that."""
        # PySide reads the source of each module that is imported after it, to search it once.
        linecache.clearcache()
        self.window.show()
        self.window.apply_plot_settings(self.settings.values("plots"))
        self.control.show_actions()
        self.deferred.start()
        self.runs.open(self.runs_dir)

    def _make_sheet(self) -> None:
        """Make the sheet in two turns; `new_run` completes it where it is wanted at once."""
        self._in_turns(self.window.prepare_new_run, lambda: self.window.new_run)

    def _open_the_rest(self) -> None:
        def look() -> None:
            self.drafting.open()
            self.recipes.open()
            self.table.open()

        def show() -> None:
            self.new_run.check_draft()
            self.beginning.open()
            self.control.show_actions()
            self.machines.show_devices(self.window.new_run.machines)
            self.machines.follow_runs()
            self._import_then(COMPARE, lambda: None)

        self._in_turns(self.window.prepare_new_run, lambda: self.new_run, look, show)

    def _in_turns(self, *steps: Callable[[], object]) -> None:
        """Do one step in each turn of the event loop, so that the window stays responsive."""
        if steps and not self.showing.is_closed:
            steps[0]()
            QTimer.singleShot(0, self, lambda: self._in_turns(*steps[1:]))

    def _on_environment_made(self) -> None:
        self.beginning.open()
        self.new_run.look_again()

    def on_started_again(self, arguments: Sequence[str]) -> None:
        """Come forward: the program was started a second time."""
        self.window.come_forward()
        self.show_named_run(arguments)

    def show_named_run(self, arguments: Sequence[str]) -> None:
        if (run_dir := run_to_show(arguments)) is not None:
            self.showing.show(run_dir)

    def close(self) -> None:
        """Save settings and end every thread; runs continue."""
        made = vars(self)
        if self._draft_saving is not None:
            self._draft_saving.save()
        self.settings.set_values("plots", dict(self.window.plot_settings()))
        self.settings.sync()
        for part in (
            self.notifications, self.machine_check, self.machines, self.environment,
            self.updating, self.deferred,
            made.get("drafting"), self._new_run, self.files,
            self.showing, self.recipes, self.runs, self.table, self.runner,
        ):  # fmt: skip
            if part is not None:
                part.close()

    def on_defect(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Report an unforeseen error: the traceback to the log, a sentence to the user. The window stays open."""
        _log.error("a part of the window failed", exc_info=(kind, error, trace))
        self.window.notice.show_error(unexpected(error))


def _connect(store: RunStore, timeout_s: float) -> Connection:
    """Connect to a live run's host, in the thread that reads the run."""
    from core import client

    return client.connect(store, timeout_s)


def main(argv: Sequence[str], instance: SingleInstance) -> int:
    """Open the window and run until it is closed; `argv`: options for the window and for Qt (``-style`` …)."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    set_app_id()
    application = QApplication([sys.argv[0], *argv])
    application.setApplicationName("Rankdeck")
    application.setApplicationVersion(__version__)
    set_desktop_name()
    instance.listen()
    settings = user_settings()
    Theme(application).choose(settings.text("theme") or "system")
    rankdeck = Rankdeck(settings, default_runs_dir())
    sys.excepthook = rankdeck.on_defect
    signal.signal(signal.SIGINT, lambda *_: rankdeck.window.close_now())  # Ctrl+C in the terminal; runs continue
    rankdeck.deferred.due.connect(GarbageCollection(rankdeck).start)
    rankdeck.window.closed.connect(instance.close)
    instance.arrived.connect(rankdeck.on_started_again)
    rankdeck.open()
    rankdeck.show_named_run(argv)
    return application.exec()
