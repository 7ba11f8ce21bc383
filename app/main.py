"""The composition root: makes models, views and controllers, and connects them."""

from __future__ import annotations

import dataclasses
import gc
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication

from app.controllers.background import OperationRunner, unexpected
from app.controllers.export import Exporting
from app.controllers.run_control import Launching
from app.controllers.setup import SetupWiring
from app.controllers.setup_checks import DatasetSize, Drafting
from app.controllers.shown_run import Showing
from app.controllers.sync_pricing import Pricing
from app.models.device_table import DeviceTable, monitor_for
from app.models.ledger_data import LedgerData
from app.models.rank_log import RankLog
from app.models.recipe_list import RecipeList
from app.models.run_data import RunData
from app.models.run_list import RunList
from app.settings import Settings, user_settings
from app.state.available_actions import Situation, verbs_of
from app.state.preview_text import data_words
from app.state.run_notes import Facts
from app.state.run_summary import Standing, standing_of
from app.state.setup_form import CheckedDraft, Draft, draft_from_config, mode_changes
from app.views.setup.device_row import label_of
from app.views.style.theme import Theme
from app.views.widgets.notice_bar import Step
from app.views.window.main_window import MainWindow
from core import __version__, client
from core.config.run_config import RunConfig
from core.errors import ConfigError, DatasetError, RankdeckError
from core.export.kinds import KINDS
from core.machine.devices import device_texts
from core.machine.packages import MissingPackageError
from core.recipes.manifest import find_recipes
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.resume.plan import ResumePlan
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, default_runs_dir

if TYPE_CHECKING:
    from app.views.dialogs.resume_dialog import ResumeDialog
    from core.export.export import Exported

_log = logging.getLogger(__name__)
LOOKS_SOON_MS: Final = 200
"""How long after the first plot Setup looks around: all plots are drawn once more when the run is read to its end."""
LOOKS_AT_LATEST_MS: Final = 1500
"""When it does at the latest, whatever the shown run does."""
HELP: Final = Path(__file__).resolve().parents[1] / "README.md"


class Rankdeck(QObject):
    """The application's parts. `open` shows the window; closing it, or `close`, ends every thread."""

    def __init__(self, settings: Settings, runs_dir: Path) -> None:
        super().__init__()
        self.settings = settings
        self.runs_dir = runs_dir
        self.runner = OperationRunner(self)
        self.data = RunData(client.connect, self)
        self.runs = RunList(self)
        self.table = DeviceTable(monitor_for, self)
        self.ledger = LedgerData(self)
        self.log = RankLog(self)
        self.recipes = RecipeList(self)
        self.exporting = Exporting(self.runner, self)
        self.launching = Launching(self.runner, runs_dir, self)
        self.drafting = Drafting(self.runner, self)
        self.pricing = Pricing(self.runner, runs_dir, self)
        self.showing = Showing(self.runner, self.data, self.ledger, self.log, settings, self)
        self.window = MainWindow(self.data, self.runs.model, self.log, find_recipes(), settings)
        self.aids = SetupWiring(self.window.setup, self.drafting, self.runner, self.data, self.table, self)
        self.facts = Facts()
        self.dialog: ResumeDialog | None = None
        self._stops: dict[Path, bool] = {}
        self._closing: set[Path] = set()
        self._looks = QTimer(self)
        self._looks.setSingleShot(True)
        self._looks.setInterval(LOOKS_AT_LATEST_MS)
        self._connect_runs()
        self._connect_setup()
        self._connect_verbs()

    # --- connections -------------------------------------------------------------------------------------

    def _connect_runs(self) -> None:
        window, showing, data = self.window, self.showing, self.data
        self._looks.timeout.connect(self._look_around)
        window.evidence.loss.chart.redrawn.connect(self._on_drawn)
        self.runs.listed.connect(showing.on_listed)
        self.runs.listed.connect(self._on_listed)
        window.run_chosen.connect(showing.show)
        window.replay_requested.connect(showing.show_again)
        showing.shown.connect(self._on_shown)
        showing.failed.connect(window.runs.notice.show_error)
        showing.logs_changed.connect(window.tabs.log.set_sources)
        showing.config_read.connect(self._on_config_read)
        showing.config_failed.connect(window.tabs.config.show_error)
        window.tabs.log.log_chosen.connect(showing.show_log)
        window.tabs.config.copy_requested.connect(self._on_copy_requested)
        data.status_changed.connect(self._on_status_changed)
        data.changed.connect(self._on_data_changed)
        data.reset.connect(self._on_data_changed)
        data.failed.connect(window.show_error)
        self.ledger.changed.connect(window.tabs.ledger.show_snapshot)
        self.ledger.failed.connect(window.tabs.ledger.show_error)

    def _connect_setup(self) -> None:
        setup, drafting = self.window.setup, self.drafting
        self.table.devices_changed.connect(self._on_devices_changed)
        self.table.sampled.connect(self._on_sampled)
        self.recipes.listed.connect(setup.set_recipes)
        setup.draft_changed.connect(self._on_draft_changed)
        drafting.checked.connect(self._on_checked)
        drafting.surroundings_changed.connect(setup.mode.set_surroundings)
        drafting.dataset_found.connect(self._on_dataset_found)
        drafting.dataset_failed.connect(setup.data.show_problem)
        dial = setup.mode.dial
        dial.measure_requested.connect(self.pricing.measure)
        self.pricing.words_changed.connect(dial.show_price)
        self.pricing.measuring_changed.connect(dial.show_measuring)
        self.pricing.failed.connect(setup.notice.show_error)

    def _connect_verbs(self) -> None:
        window, launching = self.window, self.launching
        window.start_requested.connect(self._on_start_requested)
        window.stop_requested.connect(self._on_stop_requested)
        window.resume_requested.connect(self._on_resume_requested)
        window.folder_requested.connect(self._on_folder_requested)
        window.help_requested.connect(self._on_help_requested)
        window.export_requested.connect(self._on_export_requested)
        self.exporting.begun.connect(self._on_export_begun)
        self.exporting.exported.connect(self._on_exported)
        self.exporting.failed.connect(window.show_error)
        window.stop_and_close_requested.connect(self._on_stop_and_close)
        window.closed.connect(self.close)
        launching.busy_changed.connect(self._on_busy_changed)
        launching.started.connect(self._on_started)
        launching.noted.connect(self._on_noted)
        launching.start_failed.connect(self._on_start_failed)
        launching.stop_asked.connect(self._on_stop_asked)
        launching.stop_failed.connect(self._on_stop_failed)

    # --- the application's life --------------------------------------------------------------------------

    def open(self) -> None:
        """Shows the window and the run that was shown last; what Setup has to find out is looked for after that."""
        self.window.show()
        saved = self.settings.last_setup()
        if saved is not None:
            draft = Draft.from_dict(saved)
            self.window.setup.set_draft(draft, keep_devices=not draft.devices)
        self.window.evidence.apply_settings(self.settings.values("plots"))
        self._show_verbs()
        self._looks.start()
        self.runs.open(self.runs_dir)

    def _look_around(self) -> None:
        """Devices, recipes, packages, data: their threads would hold up the first picture by a third."""
        self._looks.stop()
        self.window.evidence.loss.chart.redrawn.disconnect(self._on_drawn)
        self.drafting.open()
        self.recipes.open()
        self.table.open()
        self._on_draft_changed()
        self._show_verbs()

    def _look_soon(self) -> None:
        """There is no picture to wait for any more."""
        if self._looks.isActive() and self._looks.interval() != LOOKS_SOON_MS:
            self._looks.start(LOOKS_SOON_MS)

    def _on_drawn(self) -> None:
        if self.data.series.ranks():
            self._look_soon()

    def close(self) -> None:
        """Remembers what was chosen and ends every thread; runs go on."""
        setup = self.window.setup
        wished = dataclasses.replace(setup.draft(), devices=tuple(setup.devices.wished()))
        self.settings.set_last_setup(wished.as_dict())
        self.settings.set_values("plots", self.window.evidence.settings())
        self.settings.sync()
        self._looks.stop()
        self.drafting.close()
        self.aids.close()
        self.pricing.close()
        self.exporting.close()
        self.showing.close()
        self.recipes.close()
        self.runs.close()
        self.table.close()
        self.runner.close()

    def on_defect(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An error that nothing foresaw: the log gets the traceback, the person a sentence, the window goes on."""
        _log.error("a part of the window failed", exc_info=(kind, error, trace))
        self.window.show_error(unexpected(error))

    # --- runs --------------------------------------------------------------------------------------------

    def _on_listed(self, _entries: Sequence[RunEntry]) -> None:
        self._show_live()
        self.window.runs.show_current(self.showing.run_dir)
        if self.showing.run_dir is None:
            self._look_soon()
        self._show_verbs()

    def _on_shown(self, run_dir: Path) -> None:
        self.window.show_run(run_dir)
        self._show_verbs()

    def _on_status_changed(self, state: RunState) -> None:
        self._show_standing()
        self.window.show_ending(state)
        self._show_live()
        if not state.is_live and self.showing.run_dir is not None:
            self._stops.pop(self.showing.run_dir, None)
        self.runs.refresh()
        self._show_verbs()

    def _on_data_changed(self, *_: object) -> None:
        if self.data.is_caught_up and not self.data.series.ranks():
            self._look_soon()
        self._show_standing()
        self.window.show_facts(self.facts.of(self.data.series))
        self.window.tabs.samples.show_samples(self.data.samples)
        self.window.tabs.alerts.show_events(self.data.series.events)
        if self.window.setup.mode.dial.isVisible():
            self.pricing.show_run(self.data.series)

    def _show_standing(self) -> None:
        if self.launching.busy:
            return
        name = self.showing.run_dir.name if self.showing.run_dir is not None else ""
        names = {device.uuid: device.name for device in self.table.devices}
        self.window.show_standing(standing_of(self.data.state, self.data.series, names), name)

    def _on_config_read(self, text: str, config: RunConfig) -> None:
        self.window.tabs.config.show_config(text, config)

    def _on_copy_requested(self, config: RunConfig) -> None:
        self.window.setup.set_draft(draft_from_config(config, self.table.devices))
        self.window.actions_.setup.setChecked(True)

    # --- setup -------------------------------------------------------------------------------------------

    def _on_devices_changed(self) -> None:
        self.window.setup.devices.set_devices(self.table.devices, self.table.problem, self.table.no_cuda)
        self.window.evidence.set_device_names({device.uuid: label_of(device) for device in self.table.devices})
        self._on_draft_changed()

    def _on_sampled(self) -> None:
        samples = [self.table.sample(device.uuid) for device in self.table.devices]
        self.window.setup.devices.show_samples([sample for sample in samples if sample is not None])

    def _on_draft_changed(self) -> None:
        setup = self.window.setup
        setup.notice.clear()
        self.drafting.update(setup.draft(), setup.chosen_recipe(), setup.devices.selected())
        self.aids.update(setup.draft(), setup.chosen_recipe())
        self.pricing.update(setup.devices.selected(), setup.mode.dial.every())
        self.pricing.show_run(self.data.series)

    def _on_checked(self, checked: CheckedDraft, steps_per_epoch: int | None) -> None:
        setup = self.window.setup
        setup.show_checked(checked)
        setup.summary.show_checked(checked, steps_per_epoch, len(setup.devices.selected()))
        self.window.welcome.show_plan(setup.plan_words(checked))
        self._show_verbs()

    def _on_dataset_found(self, size: DatasetSize) -> None:
        data = self.window.setup.data
        data.show_problem(None)
        data.show_found(data_words(size.path, size.files, size.size_bytes))

    def _show_live(self) -> None:
        live = self._live_runs()
        scripts = [state for state in live.values() if state.recipe == USER_SCRIPT]
        self.window.set_live([run_dir.name for run_dir in live], len(scripts))

    def _live_runs(self) -> dict[Path, RunState]:
        """The runs that are going; the shown one too where the list has not met it yet."""
        live = {e.path: e.state for e in self._entries() if e.state is not None and e.state.is_live}
        run_dir, state = self.showing.run_dir, self.data.state
        if run_dir is not None and state is not None and state.is_live:
            live.setdefault(run_dir, state)
        return live

    def _entries(self) -> list[RunEntry]:
        """The runs; the shown one as its host says it is, which the list learns of up to a second later."""
        run_dir, state = self.showing.run_dir, self.data.state
        entries = self.runs.model.entries()
        if run_dir is None or state is None:
            return entries
        return [RunEntry(run_dir, state) if entry.path == run_dir else entry for entry in entries]

    # --- verbs -------------------------------------------------------------------------------------------

    def _show_verbs(self) -> None:
        run_dir = self.showing.run_dir
        situation = Situation(
            shown=self.data.state,
            runs=self._entries(),
            checked=self.drafting.latest,
            ticked=self.window.setup.devices.selected(),
            busy=self.launching.busy,
            stop_asked=run_dir in self._stops,
            end_asked=self._stops.get(run_dir, False) if run_dir is not None else False,
        )
        verbs = verbs_of(situation)
        self.window.show_verbs(verbs)
        self.window.setup.mode.dial.set_can_measure(verbs.measure or "")

    def _on_busy_changed(self, words: str) -> None:
        if words:
            self.window.show_standing(Standing("starting", detail="checking data and devices"), "")
        else:
            self._show_standing()
        self._show_verbs()

    def _on_start_requested(self) -> None:
        checked = self.drafting.latest
        if checked is not None and checked.config is not None:
            self.window.setup.notice.clear()
            self.launching.start(checked.config, self.table.devices)

    def _on_started(self, run_dir: Path) -> None:
        if self.dialog is not None:
            self.dialog.accept()
        self._stops.pop(run_dir, None)
        self.runs.refresh()
        self.showing.show(run_dir)

    def _on_noted(self, notes: Sequence[str]) -> None:
        self.window.setup.notice.say("info", "Run started, with notes", " ".join(notes))

    def _on_start_failed(self, error: RankdeckError) -> None:
        setup = self.window.setup
        step = None
        if isinstance(error, MissingPackageError):
            step = self.aids.install_step(error)
        elif isinstance(error, DatasetError):
            setup.data.show_problem(error)
            step = Step("Choose &data…", setup.data.choose_file)
        elif isinstance(error, ConfigError):
            setup.show_refusal(error)
        self.window.actions_.setup.setChecked(True)
        setup.notice.show_error(error, step)

    def _on_stop_requested(self, now: bool) -> None:
        run_dir = self.showing.run_dir
        if run_dir is not None:
            self._stops[run_dir] = now
            self._show_verbs()
            self.launching.stop(run_dir, now)

    def _on_stop_asked(self, run_dir: Path, _now: bool) -> None:
        if run_dir in self._closing:
            self._closing.remove(run_dir)
            if not self._closing:
                self.window.close_now()

    def _on_stop_failed(self, error: RankdeckError) -> None:
        self._closing.clear()
        if self.showing.run_dir is not None:
            self._stops.pop(self.showing.run_dir, None)
        self.window.show_error(error)
        self._show_verbs()

    def _on_stop_and_close(self) -> None:
        """Closes the window once every host has taken note; the commits do not need it any more."""
        self._closing = set(self._live_runs())
        for run_dir in self._closing:
            self._stops[run_dir] = False
            self.launching.stop(run_dir)
        self._show_verbs()
        if not self._closing:
            self.window.close_now()

    def _on_resume_requested(self) -> None:
        if self.dialog is not None:
            self.dialog.raise_()
            return
        from app.views.dialogs.resume_dialog import ResumeDialog  # here, as other dialogs: the window opens without it

        ticked = device_texts(self.window.setup.devices.selected())
        dialog = ResumeDialog(self._entries(), ticked, mode_changes(self.window.setup.draft()), self.window)
        dialog.plan_requested.connect(self._on_plan_requested)
        dialog.resume_requested.connect(self._on_plan_agreed)
        dialog.finished.connect(self._on_dialog_finished)
        self.launching.planned.connect(dialog.show_plan)
        self.launching.plan_failed.connect(dialog.show_error)
        self.dialog = dialog
        dialog.open()
        state, run_dir = self.data.state, self.showing.run_dir
        if run_dir is not None and state is not None and not state.is_live:
            dialog.choose(str(run_dir))

    def _on_plan_requested(self, text: str, changes: dict[str, object]) -> None:
        self.launching.plan(text, changes, self.table.devices)

    def _on_plan_agreed(self, plan: ResumePlan) -> None:
        if self.dialog is not None:
            self.dialog.show_busy()
        self.launching.resume(plan)

    def _on_dialog_finished(self, _result: int) -> None:
        self.dialog = None

    def _on_folder_requested(self) -> None:
        if self.showing.run_dir is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.showing.run_dir)))

    def _on_export_requested(self, kind: str) -> None:
        if self.showing.run_dir is not None:
            self.exporting.export(self.showing.run_dir, kind)

    def _on_export_begun(self, run_dir: Path, kind: str) -> None:
        self.window.notice.say("info", f"Exporting {run_dir.name}", f"{KINDS[kind]} …")

    def _on_exported(self, run_dir: Path, made: Exported) -> None:
        folder = made.path if made.path.is_dir() else made.path.parent

        def open_folder() -> None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

        words = "\n".join((str(made.path), *made.details))
        self.window.notice.say(
            "success", f"Exported {run_dir.name}: {KINDS[made.kind]}", words, Step("Open &folder", open_folder)
        )

    def _on_help_requested(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(HELP)))


def main(argv: Sequence[str]) -> int:
    """Opens the window and runs until it is closed.

    Args:
        argv: Options for the window and for Qt (``-style`` …).
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    application = QApplication([sys.argv[0], *argv])
    application.setApplicationName("Rankdeck")
    application.setApplicationVersion(__version__)
    Theme(application)
    rankdeck = Rankdeck(user_settings(), default_runs_dir())
    sys.excepthook = rankdeck.on_defect
    signal.signal(signal.SIGINT, lambda *_: rankdeck.window.close_now())  # Ctrl+C in the terminal; runs go on
    rankdeck.open()
    gc.freeze()  # what stays as long as the window need not be looked through while it is used, either
    gc.enable()
    return application.exec()
