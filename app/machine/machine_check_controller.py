"""Check of this machine: runs checks and self-tests off the GUI thread, carries out fixes, saves diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from app.threads.background import Operation, OperationRunner
from app.threads.measuring import Cancelled, Measuring, Tell
from app.widgets.notice_bar import Step
from app.widgets.open_outside import open_path
from core.errors import RankdeckError, sentences

if TYPE_CHECKING:
    from app.machine.doctor_page import DoctorPage
    from app.preferences.preferences_controller import PreferencesController
    from app.settings import Settings
    from app.window.main_window import MainWindow
    from core.doctor.finding import Finding

PREPARING: Final = "Preparing the self-tests"
FILE_NAME: Final = "rankdeck-diagnostics.zip"
LOOK_THROUGH: Final = "Keys, tokens and passwords were replaced. Look through it before you send it."
# Groups of the window's settings that diagnostics hold.
KEPT: Final = ("draft", "drafts", "plots", "window")


@dataclass(frozen=True, slots=True)
class Testing:
    """A self-test that begins, the `number`th of `count`."""

    name: str
    number: int
    count: int


class MachineCheckController(QObject):
    """Carries out the page's intents; `page` is None while it is not shown."""

    def __init__(
        self,
        window: MainWindow,
        runner: OperationRunner,
        preferences: PreferencesController,
        settings: Settings,
        runs_dir: Path,
        install: Callable[[str], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._runner = window, runner
        self._preferences, self._settings, self._runs_dir = preferences, settings, runs_dir
        self._install = install
        self.page: DoctorPage | None = None
        self.testing = Measuring(self)
        self.testing.progressed.connect(self._on_progressed)
        self.testing.found.connect(self._on_tested)
        self.testing.failed.connect(self._on_tests_failed)
        window.actions_.doctor.triggered.connect(self.open)
        window.page_shown.connect(self._on_page_shown)

    def close(self) -> None:
        self.testing.close()

    def open(self) -> None:
        from app.machine.doctor_page import DoctorPage  # here: the window opens without it

        if self.page is None:
            self.page = page = DoctorPage()
            page.close_requested.connect(self._window.show_home)
            page.check_requested.connect(self.check)
            page.self_tests_requested.connect(self._on_self_tests_requested)
            page.cancel_requested.connect(self.testing.stop)
            page.diagnostics_requested.connect(self._on_diagnostics_requested)
            page.fix_requested.connect(self._on_fix_requested)
            self.check()
        self._window.show_page(self.page)

    # --- checks ------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Run the quick checks; results of self-tests stay."""
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
        if self.page is not None and not self.testing.is_going:  # those of a page before are still ending
            self.page.show_testing(PREPARING, 1, 0)
            self.testing.start(_test)

    def _on_progressed(self, news: Testing | Sequence[Finding]) -> None:
        if not isinstance(news, Testing):
            self._add_findings(news)
        elif self.page is not None:
            self.page.show_testing(news.name, news.number, news.count)

    def _add_findings(self, findings: Sequence[Finding]) -> None:
        from core.doctor.finding import merged

        if self.page is not None:
            self.page.show_findings(merged(self.page.findings, findings))

    def _on_tested(self, judged: Sequence[Finding]) -> None:
        self._add_findings(judged)
        if self.page is not None:
            self.page.show_tested()

    def _on_tests_failed(self, error: RankdeckError) -> None:
        if self.page is not None:
            self.page.show_tested()
        self._window.notice.show_error(error)

    # --- fixes -------------------------------------------------------------------------------------------

    def _on_fix_requested(self, finding: Finding) -> None:
        from core.doctor import machine

        fix, runs_dir = finding.fix, self._runs_dir
        if fix in ("install_cuda", "install_deepspeed"):
            self._install(fix)
        elif fix == "copy_command":
            QGuiApplication.clipboard().setText(finding.command)
            self._window.notice.say_briefly("Command copied", "Run it in a terminal, then check again.")
        elif fix == "choose_runs_folder":
            self._preferences.show_settings()
        elif fix == "create_runs_folder":
            self._fix(lambda: machine.create_folder(runs_dir))
        elif fix == "end_leftovers":
            self._fix(lambda: machine.end_all_leftovers(runs_dir))

    def _fix(self, work: Callable[[], str]) -> None:
        def done(text: str) -> None:
            self._window.notice.say_briefly("Done", text)
            self.check()

        self._runner.run(Operation(work, done, self._window.notice.show_error))

    # --- diagnostics -------------------------------------------------------------------------------------

    def _on_diagnostics_requested(self) -> None:
        start = str(Path.home() / FILE_NAME)
        path, _ = QFileDialog.getSaveFileName(self._window, "Save diagnostics", start, "ZIP files (*.zip)")
        if path:
            self.save_diagnostics(Path(path).with_suffix(".zip"))

    def save_diagnostics(self, path: Path) -> None:
        if self.page is None:
            return
        notice, findings, runs_dir = self._window.notice, tuple(self.page.findings), self._runs_dir
        settings = {name: self._settings.values(name) for name in KEPT}

        def work() -> None:
            from core.doctor.diagnostics import gather, write_zip
            from core.machine.platform import this_platform

            write_zip(gather(findings, runs_dir, this_platform(), settings), path)

        def done(_: None) -> None:
            step = Step("Open &folder", lambda: open_path(path.parent, notice))
            notice.say("success", "Diagnostics saved", sentences(f"{path}.", LOOK_THROUGH), step)

        self._runner.run(Operation(work, done, notice.show_error, topic="diagnostics"))

    # --- the page ----------------------------------------------------------------------------------------

    def _on_page_shown(self, page: object) -> None:
        """End the self-tests and drop the page once another one is in front."""
        if self.page is not None and page is not self.page:
            self.testing.stop()
            self._window.drop_page(self.page)
            self.page = None


def _test(tell: Tell, cancelled: Cancelled) -> Sequence[Finding]:
    """Run the self-tests in a worker thread; return the verdicts on modes that follow from all of them."""
    from core.doctor.self_tests import judge_modes, list_here, run_self_test
    from core.machine.platform import this_platform

    platform = this_platform()
    tests = list_here(platform)
    tested: list[Finding] = []
    for number, test in enumerate(tests, 1):
        tell(Testing(test.topic.name, number, len(tests)))
        tested.append(run_self_test(test, platform, cancelled=cancelled))
        tell(tested[-1:])
    return judge_modes(tested, platform)
