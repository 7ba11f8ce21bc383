"""Updates: one quiet question a day, the notice of a newer version, its download, and the way back."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMessageBox

from app.controllers.background import Operation, OperationRunner
from app.settings import Settings
from app.views.widgets.notice_bar import Step
from core import __version__
from core.errors import RankdeckError, sentences

if TYPE_CHECKING:
    # The window opens without these: they bring TLS and an HTTP client along.
    from app.views.dialogs.update_card import UpdateStatus
    from app.views.dialogs.update_dialog import UpdateDialog
    from app.views.window.main_window import MainWindow
    from core.updates.announcement import Announcement
    from core.updates.installed import Installation

ADDRESS: Final = "update_address"
LAST_CHECK: Final = "update_check"
BUSY_TITLE: Final = "A run is being trained"


class Updating(QObject):
    """Asks nothing while no address is set.

    Args:
        live_runs: The names of runs that are being trained.

    Signals:
        status_changed: The `UpdateStatus`: a check has ended, or another address was chosen.
    """

    status_changed = Signal(object)
    _arrived = Signal(int)

    def __init__(
        self,
        window: MainWindow,
        settings: Settings,
        runner: OperationRunner,
        live_runs: Callable[[], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._settings, self._runner, self._live_runs = window, settings, runner, live_runs
        self._own = OperationRunner(self)  # a download must not delay other questions
        self._announcement: Announcement | None = None
        self._installation: Installation | None = None
        self._stop: threading.Event | None = None
        self.dialog: UpdateDialog | None = None
        self._arrived.connect(self._on_arrived, Qt.ConnectionType.QueuedConnection)

    def open(self) -> None:
        """Once the window is open: tells a setup that waits for that, and checks if a day has passed."""

        def work() -> Installation | None:
            from core.updates.installed import find_installation, tell_opened

            installation = find_installation()
            if installation is not None:
                tell_opened(installation)
            return installation

        def done(found: Installation | None) -> None:
            from app.state.update_text import check_from

            self._installation = found
            if self.address and check_from(self._settings.values(LAST_CHECK)).is_due(time.time()):
                self.check()

        self._runner.run(Operation(work, done, lambda _: None))

    def close(self) -> None:
        """Stops a download and waits a bounded time for it."""
        self._on_stop_requested()
        self._own.close()

    @property
    def address(self) -> str:
        """The server that is asked; empty: none."""
        return self._settings.text(ADDRESS) or ""

    def set_address(self, address: str) -> None:
        """Chooses another server; the last check was not its own."""
        self._settings.set_text(ADDRESS, address)
        self._settings.set_values(LAST_CHECK, {})
        self._announcement = None
        self.status_changed.emit(self.status())

    def status(self) -> UpdateStatus:
        """What Settings shows."""
        from app.state.update_text import check_from, check_text
        from app.views.dialogs.update_card import UpdateStatus
        from core.updates.announcement import is_newer

        check = check_from(self._settings.values(LAST_CHECK))
        return UpdateStatus(
            self.address,
            check_text(check, __version__, time.time(), bool(self.address)),
            bool(self.address) and is_newer(check.release, __version__),
            "" if self._installation is None else self._installation.previous_version,
        )

    def check(self, then: Callable[[], None] | None = None) -> None:
        """Asks the server. What goes wrong is only told in Settings.

        Args:
            then: Done with a newer version; None gives notice of it.
        """
        address = self.address

        def work() -> Announcement:
            from core.updates.server import ask

            return ask(address)

        done = functools.partial(self._on_announced, then=then or self._give_notice)
        self._own.run(Operation(work, done, self._on_check_failed, topic="check"))

    def show_update(self) -> None:
        """Opens the dialog of the newer version, after a check if this window has made none."""
        if self._announcement is None:
            self.check(self._open_dialog)
        else:
            self._open_dialog()

    def ask_back(self) -> None:
        """Asks whether to go back to the version before, and does it."""
        installation = self._installation
        if installation is None:
            return
        question = QMessageBox(self._window)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setWindowTitle("Go back")
        question.setText(f"Go back to Rankdeck {installation.previous_version}?")
        question.setInformativeText("This window closes, and the version before opens. Runs and settings stay.")
        back = question.addButton("&Go back", QMessageBox.ButtonRole.AcceptRole)
        question.addButton(QMessageBox.StandardButton.Cancel)
        back.clicked.connect(lambda: self._go_back(installation))
        question.open()

    # --- the check -----------------------------------------------------------------------------------------

    def _on_announced(self, announcement: Announcement, then: Callable[[], None]) -> None:
        from core.updates.announcement import is_newer

        self._announcement = announcement
        self._keep_check(announcement.release, "")
        if is_newer(announcement.release, __version__):
            then()

    def _on_check_failed(self, error: RankdeckError) -> None:
        self._keep_check("", sentences(f"{error.title}.", error.cause, error.window_step))

    def _keep_check(self, release: str, problem: str) -> None:
        from app.state.update_text import UpdateCheck

        self._settings.set_values(LAST_CHECK, UpdateCheck(time.time(), release, problem).as_kept())
        self.status_changed.emit(self.status())

    def _give_notice(self) -> None:
        if self._announcement is not None:
            title = f"Rankdeck {self._announcement.release} is available"
            self._window.runs.notice.say("info", title, "", Step("What is &new…", self.show_update))

    # --- the update ----------------------------------------------------------------------------------------

    def _open_dialog(self) -> None:
        from app.state.update_text import size_text, why_not_here
        from app.views.dialogs.update_dialog import UpdateDialog

        announcement = self._announcement
        if announcement is None or self.dialog is not None:
            return
        why_not = why_not_here(announcement, self._installation is not None)
        size = size_text(announcement, __version__)
        self.dialog = dialog = UpdateDialog(announcement.release, announcement.news, size, why_not, self._window)
        dialog.update_requested.connect(self._on_update_requested)
        dialog.stop_requested.connect(self._on_stop_requested)
        dialog.finished.connect(self._on_dialog_finished)
        dialog.open()

    def _on_update_requested(self) -> None:
        announcement, report = self._announcement, self._arrived.emit
        if announcement is None or self._is_refused():
            return
        self._stop = stop = threading.Event()

        def work() -> Path | None:
            from core.updates.server import StoppedError, download, setup_folder

            try:
                return download(announcement, setup_folder(), report, stop.is_set)
            except StoppedError:
                return None

        self._own.run(Operation(work, self._on_downloaded, self._on_failed))

    def _is_refused(self) -> bool:
        """Whether a run is being trained: the setup would refuse it too, with the window already closed."""
        if not self._live_runs():
            return False
        step = "Stop it or wait until it has ended, then update."
        self._on_failed(RankdeckError("An update would stop it.", step, title=BUSY_TITLE))
        return True

    def _on_downloaded(self, setup: Path | None) -> None:
        self._stop = None
        if setup is None:
            if self.dialog is not None:
                self.dialog.show_stopped()
            return
        if self.dialog is None or self._is_refused():
            return
        from core.updates.installed import start_setup

        self.dialog.show_starting()
        self._close_after(functools.partial(start_setup, setup))

    def _go_back(self, installation: Installation) -> None:
        if self._live_runs():
            error = RankdeckError(
                "Going back would stop it.", "Stop it or wait until it has ended, then go back.", title=BUSY_TITLE
            )
            self._window.notice.show_error(error)
            return
        from core.updates.installed import go_back

        self._close_after(functools.partial(go_back, installation))

    def _close_after(self, start: Callable[[], None]) -> None:
        """Starts what waits for the window's end, and ends it."""
        self._own.run(Operation(start, lambda _: self._window.close_now(), self._on_failed))

    def _on_stop_requested(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _on_arrived(self, arrived: int) -> None:
        announcement = self._announcement
        if self.dialog is not None and announcement is not None and announcement.setup is not None:
            self.dialog.show_arrived(arrived, announcement.setup.bytes)

    def _on_failed(self, error: RankdeckError) -> None:
        self._stop = None
        if self.dialog is not None:
            self.dialog.show_error(error)
        else:
            self._window.notice.show_error(error)

    def _on_dialog_finished(self, _result: int) -> None:
        self.dialog = None
