"""Control of *Set up PyTorch…*: makes an environment in a worker thread, chooses it, and tells who needs to know."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.controllers.background import Operation, OperationRunner
from core.errors import RankdeckError

if TYPE_CHECKING:
    # The window opens without these: downloads bring TLS and an HTTP client along.
    from app.views.dialogs.environment_dialog import EnvironmentDialog
    from app.views.window.main_window import MainWindow
    from core.environments.make import Progress
    from core.environments.record import Environment
    from core.machine.torch_builds import NvidiaDriver


class EnvironmentControl(QObject):
    """One environment at a time.

    Signals:
        made: One is ready and chosen.
    """

    made = Signal()
    _reported = Signal(object)

    def __init__(self, window: MainWindow, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._runner = window, runner
        self._own = OperationRunner(self)  # minutes of downloads must not hold up what else is to be looked at
        self._driver: NvidiaDriver | None = None
        self._stop: threading.Event | None = None
        self.dialog: EnvironmentDialog | None = None
        window.welcome.set_up.clicked.connect(self.open)
        self._reported.connect(self._on_reported, Qt.ConnectionType.QueuedConnection)

    def open(self) -> None:
        """Asks the driver, then opens the dialog."""
        if self.dialog is not None:
            return

        def work() -> NvidiaDriver | None:
            from core.machine.torch_builds import has_nvidia_driver, read_driver

            return read_driver() if has_nvidia_driver(sys.platform) else None

        self._runner.run(Operation(work, self._open, self._window.notice.show_error, topic="driver"))

    def close(self) -> None:
        """Stops what is being made and waits a bounded time for its programs."""
        self._on_stop_requested()
        self._own.close()

    def _open(self, driver: NvidiaDriver | None) -> None:
        from app.state.environment_text import build_text
        from app.views.dialogs.environment_dialog import EnvironmentDialog
        from core.environments.record import environments_folder

        self._driver = driver
        self.dialog = dialog = EnvironmentDialog(environments_folder(), build_text(driver), self._window)
        dialog.start_requested.connect(self._on_start_requested)
        dialog.stop_requested.connect(self._on_stop_requested)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_start_requested(self, parent: Path, extras: tuple[str, ...], wheels: Path | None) -> None:
        self._stop = stop = threading.Event()
        driver, report = self._driver, self._reported.emit

        def work() -> Environment | None:
            from core.environments.downloads import CancelledError
            from core.environments.make import make
            from core.environments.record import choose, folder_of, read_environment
            from core.environments.wanted import default_name, wanted_for
            from core.machine.torch_builds import ENV_TORCH_INDEX

            folder = folder_of(parent, default_name("auto", driver))
            index = os.environ.get(ENV_TORCH_INDEX) or None
            wanted = wanted_for(folder, "auto", extras, driver, index, wheels)
            made = read_environment(folder)
            if made is None or made.record.state != "ready":  # one that is ready was only not chosen
                try:
                    made = make(wanted, report, stop.is_set)
                except CancelledError:
                    return None
            choose(made)
            return made

        self._own.run(Operation(work, self._on_made, self._on_failed))

    def _on_stop_requested(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _on_reported(self, progress: Progress) -> None:
        from app.state.environment_text import share_of

        if self.dialog is not None:
            self.dialog.show_progress(progress.text, share_of(progress))

    def _on_made(self, made: Environment | None) -> None:
        self._stop = None
        if made is not None:
            self.made.emit()
        if self.dialog is None:
            return
        if made is None:
            self.dialog.show_stopped()
        else:
            self.dialog.show_done(f"PyTorch {made.record.torch} is ready. You can start a run now.")

    def _on_failed(self, error: RankdeckError) -> None:
        self._stop = None
        if self.dialog is not None:
            self.dialog.show_error(error)

    def _on_closed(self, _result: int) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = None
