"""Check of this machine: opens its page, runs checks and self-tests off the GUI thread, and carries out fixes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.bridge import Feed, Send
from app.controllers.background import Operation, OperationRunner, unexpected
from core.errors import RankdeckError

if TYPE_CHECKING:
    from app.controllers.preferences import Preferences
    from app.controllers.shown_run import Showing
    from app.settings import Settings
    from app.views.dialogs.diagnostics_dialog import DiagnosticsDialog
    from app.views.doctor.doctor_page import DoctorPage
    from app.views.window.main_window import MainWindow
    from core.doctor.diagnostics import DiagnosticsFile
    from core.doctor.finding import Finding
    from core.launch.resolved import ResolvedRun

PREPARING: Final = "Preparing the self-tests"
# Groups of the window's settings that diagnostics hold.
KEPT: Final = ("draft", "drafts", "plots", "window")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Testing:
    """A self-test begins: the `number`th of `count`."""

    name: str
    number: int
    count: int


class SelfTesting(Feed):
    """The self-tests, one after another, in a thread that waits for their processes.

    Signals:
        began: A `Testing`.
        found: A list of findings, newer than those before.
        ended: All are over; an error where they could not be run.
    """

    began = Signal(object)
    found = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._cancelled = threading.Event()

    def start(self, runs_dir: Path, run: ResolvedRun | None) -> None:
        """Begins; what comes of it comes as signals.

        Args:
            runs_dir: The folder of runs.
            run: What New run would train; None where a setting is wrong.
        """
        cancelled = self._cancelled = threading.Event()

        def work(stopping: threading.Event, send: Send) -> None:
            error: RankdeckError | None = None
            try:
                _test(runs_dir, run, lambda: stopping.is_set() or cancelled.is_set(), send)
            except RankdeckError as wrong:
                error = wrong
            except Exception as wrong:
                _log.exception("the self-tests failed")
                error = unexpected(wrong)
            send((error,))

        self._start("self-tests", work)

    def cancel(self) -> None:
        """Ends what runs; what was found by then stays, the rest is said not to be tried."""
        self._cancelled.set()

    def _on_item(self, item: object) -> None:
        if isinstance(item, Testing):
            self.began.emit(item)
        elif isinstance(item, list):
            self.found.emit(item)
        elif isinstance(item, tuple):
            self.close(wait=False)
            self.ended.emit(item[0])


def _test(runs_dir: Path, run: ResolvedRun | None, cancelled: Callable[[], bool], send: Send) -> None:
    from core.doctor.self_tests import judge_modes, list_here, run_self_test
    from core.machine.platform import this_platform

    platform = this_platform()
    tests = list_here(run, platform)
    tested: list[Finding] = []
    for number, test in enumerate(tests, 1):
        send(Testing(test.name, number, len(tests)))
        found = run_self_test(test, platform, runs_dir, cancelled=cancelled)
        tested += found
        send(found)
    send(judge_modes(tested, platform))


class MachineCheck(QObject):
    """Carries out what the page that checks this machine asks for.

    Attributes:
        page: While it is shown; None otherwise.
        dialog: Shows diagnostics; None while it is closed.
    """

    def __init__(
        self,
        window: MainWindow,
        showing: Showing,
        runner: OperationRunner,
        preferences: Preferences,
        settings: Settings,
        runs_dir: Path,
        chosen_run: Callable[[], ResolvedRun | None],
        install: Callable[[str], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._showing, self._runner = window, showing, runner
        self._preferences, self._settings, self._runs_dir = preferences, settings, runs_dir
        self._chosen_run, self._install = chosen_run, install
        self.page: DoctorPage | None = None
        self.dialog: DiagnosticsDialog | None = None
        self.testing = SelfTesting(self)
        self.testing.began.connect(self._on_test_began)
        self.testing.found.connect(self._add_findings)
        self.testing.ended.connect(self._on_tests_ended)
        window.actions_.doctor.triggered.connect(self.open)
        window.page_shown.connect(self._on_page_shown)

    def close(self) -> None:
        """Ends the self-tests."""
        self.testing.close()

    def open(self) -> None:
        """Shows the page and runs the quick checks."""
        from app.views.doctor.doctor_page import DoctorPage  # here: the window opens without it

        if self.page is None:
            self.page = page = DoctorPage()
            page.close_requested.connect(self._on_close_requested)
            page.check_requested.connect(self.check)
            page.self_tests_requested.connect(self._on_self_tests_requested)
            page.cancel_requested.connect(self.testing.cancel)
            page.diagnostics_requested.connect(self._on_diagnostics_requested)
            page.fix_requested.connect(self._on_fix_requested)
            self._window.set_doctor_page(page)
            self.check()
        self._window.show_page(self.page)

    # --- checks ------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Runs the quick checks; results of self-tests stay."""
        page, runs_dir = self.page, self._runs_dir
        if page is None:
            return
        page.show_checking()

        def work() -> list[Finding]:
            from core.doctor.quick import examine
            from core.machine.platform import this_platform

            return list(examine(runs_dir, this_platform()))

        def done(findings: list[Finding]) -> None:
            from core.doctor.finding import SELF_TESTS

            if page is self.page:
                tested = [finding for finding in page.findings if finding.topic.group == SELF_TESTS]
                page.show_findings([*findings, *tested])

        def failed(error: RankdeckError) -> None:
            self._window.notice.show_error(error)
            if page is self.page:
                page.show_findings(page.findings)

        self._runner.run(Operation(work, done, failed, topic="doctor"))

    def _on_self_tests_requested(self) -> None:
        if self.page is not None:
            self.page.show_testing(PREPARING, 1, 0)
            self.testing.start(self._runs_dir, self._chosen_run())

    def _on_test_began(self, test: Testing) -> None:
        if self.page is not None:
            self.page.show_testing(test.name, test.number, test.count)

    def _add_findings(self, findings: Sequence[Finding]) -> None:
        from core.doctor.finding import merged

        if self.page is not None:
            self.page.show_findings(merged(self.page.findings, findings))

    def _on_tests_ended(self, error: RankdeckError | None) -> None:
        if self.page is not None:
            self.page.show_tested()
        if error is not None:
            self._window.notice.show_error(error)

    # --- fixes -------------------------------------------------------------------------------------------

    def _on_fix_requested(self, finding: Finding) -> None:
        from core.doctor import fixes

        fix, runs_dir = finding.fix, self._runs_dir
        if fix in ("install_cuda", "install_deepspeed"):
            self._install(fix)
        elif fix == "copy_command":
            QGuiApplication.clipboard().setText(finding.command)
            self._window.notice.say_briefly("Command copied", "Run it in a terminal, then check again.")
        elif fix == "choose_runs_folder":
            self._preferences.show_settings()
        elif fix == "create_runs_folder":
            self._fix(lambda: fixes.create_folder(runs_dir))
        elif fix == "end_leftovers":
            self._fix(lambda: fixes.end_all_leftovers(runs_dir))
        else:
            self._fix(lambda: fixes.open_settings(fix), checks=False)

    def _fix(self, work: Callable[[], str], *, checks: bool = True) -> None:
        def done(text: str) -> None:
            self._window.notice.say_briefly("Done", text)
            if checks:
                self.check()

        self._runner.run(Operation(work, done, self._window.notice.show_error))

    # --- diagnostics -------------------------------------------------------------------------------------

    def _on_diagnostics_requested(self) -> None:
        if self.page is None or self.dialog is not None:
            return
        findings, runs_dir = tuple(self.page.findings), self._runs_dir
        settings = {name: self._settings.values(name) for name in KEPT}

        def work() -> tuple[DiagnosticsFile, ...]:
            from core.doctor.diagnostics import gather
            from core.machine.platform import this_platform

            return gather(findings, runs_dir, this_platform(), settings)

        self._runner.run(Operation(work, self._show_diagnostics, self._window.notice.show_error, topic="diagnostics"))

    def _show_diagnostics(self, files: Sequence[DiagnosticsFile]) -> None:
        from app.views.dialogs.diagnostics_dialog import DiagnosticsDialog

        self.dialog = dialog = DiagnosticsDialog(files, self._window)
        dialog.save_requested.connect(lambda path: self._save(dialog.files(), path))
        dialog.finished.connect(self._on_dialog_closed)
        dialog.open()

    def _save(self, files: Sequence[DiagnosticsFile], path: Path) -> None:
        from core.doctor.diagnostics import write_zip

        def saved(_: None) -> None:
            if self.dialog is not None:
                self.dialog.show_saved(path)

        def failed(error: RankdeckError) -> None:
            if self.dialog is not None:
                self.dialog.show_error(error)

        self._runner.run(Operation(lambda: write_zip(files, path), saved, failed))

    def _on_dialog_closed(self) -> None:
        self.dialog = None

    # --- the page ----------------------------------------------------------------------------------------

    def _on_close_requested(self) -> None:
        window = self._window
        window.show_page(window.welcome if self._showing.run_dir is None else window.run_page)

    def _on_page_shown(self, page: object) -> None:
        """Another page is in front: the self-tests end, and the page is let go."""
        if self.page is not None and page is not self.page:
            self.testing.close(wait=False)
            self.page = None
            self._window.set_doctor_page(None)
