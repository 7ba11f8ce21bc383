"""Control of *Set up PyTorch…*: makes an environment in a worker thread and chooses it."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.actions.actions import explain
from app.threads.background import Operation, OperationRunner
from app.threads.measuring import Cancelled, Measuring, Tell

if TYPE_CHECKING:
    # The window opens without these: downloads bring TLS and an HTTP client along.
    from app.machine.environment_dialog import EnvironmentDialog, Offered
    from app.window.main_window import MainWindow
    from core.environments.places import Places
    from core.environments.record import Environment
    from core.machine.torch_builds import NvidiaDriver


class EnvironmentController(QObject):
    """One environment at a time.

    Signals:
        made: One is ready and chosen.
    """

    made = Signal()

    def __init__(self, window: MainWindow, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._runner = window, runner
        self._driver: NvidiaDriver | None = None
        self._making = Measuring(self)
        self.dialog: EnvironmentDialog | None = None
        own = importlib.util.find_spec("torch") is not None  # finds, does not import
        why_not = "This window's Python has PyTorch, so runs are trained with it." if own else None
        explain(window.actions_.environment, why_not)
        window.actions_.environment.triggered.connect(self.open)
        window.welcome.set_up.clicked.connect(self.open)
        window.welcome.set_up_another.clicked.connect(self.open)
        self._making.found.connect(self._on_made)

    def open(self) -> None:
        """Look at this machine's drive, driver and cards, then open the dialog."""
        if self.dialog is None:
            self._runner.run(Operation(self._look, self._open, self._window.notice.show_error, topic="driver"))

    def _look(self) -> tuple[Offered, NvidiaDriver | None]:
        """Read drive, driver and cards, in a worker thread: a driver takes seconds to answer."""
        from app.machine.environment_dialog import Offered
        from core.environments.places import current_places
        from core.environments.wanted import list_extras, present_outdated_text
        from core.machine.drives import free_bytes
        from core.machine.packages import find_extras
        from core.machine.torch_builds import choose_build, has_nvidia_driver, read_driver
        from core.recipes.catalog import find_recipes

        driver = read_driver() if has_nvidia_driver(sys.platform) else None
        places, extras = current_places(), list_extras(find_recipes(), find_extras())
        free, present = free_bytes(places.environments), present_outdated_text()
        return Offered(choose_build(driver), extras, places, free, present), driver

    def close(self) -> None:
        """Stop making an environment, and wait a bounded time for its programs."""
        self._making.close()

    def _open(self, found: tuple[Offered, NvidiaDriver | None]) -> None:
        from app.machine.environment_dialog import EnvironmentDialog

        offered, self._driver = found
        self.dialog = dialog = EnvironmentDialog(offered, self._window)
        dialog.start_requested.connect(self._on_start_requested)
        dialog.stop_requested.connect(self._making.stop)
        self._making.progressed.connect(dialog.show_progress)
        self._making.failed.connect(dialog.show_error)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_start_requested(self, places: Places, extras: tuple[str, ...], wheels: Path | None) -> None:
        self._making.start(functools.partial(_make, places, extras, wheels, self._driver))

    def _on_made(self, made: Environment | None) -> None:
        if made is not None:
            self.made.emit()
        if self.dialog is None:
            return
        if made is None:
            self.dialog.show_stopped()
        else:
            self.dialog.show_done(f"PyTorch {made.record.torch} is ready. You can start a run now.")

    def _on_closed(self, _result: int) -> None:
        self.dialog = None


def _make(
    places: Places,
    extras: tuple[str, ...],
    wheels: Path | None,
    driver: NvidiaDriver | None,
    tell: Tell,
    cancelled: Cancelled,
) -> Environment | None:
    """Make an environment, in a worker thread, and choose it; None where it was stopped."""
    from core.environments.downloads import CancelledError
    from core.environments.make import make
    from core.environments.places import keep_places
    from core.environments.record import choose, find_suitable, free_folder
    from core.environments.wanted import default_name, wanted_for
    from core.machine.torch_builds import ENV_TORCH_INDEX

    keep_places(places)
    name = default_name("auto", driver)
    made = find_suitable(places.environments, name, extras)
    if made is None:  # else it was only not chosen
        index = os.environ.get(ENV_TORCH_INDEX) or None
        wanted = wanted_for(free_folder(places.environments, name), "auto", extras, driver, index, wheels)
        try:
            made = make(wanted, tell, cancelled)
        except CancelledError:
            return None
    choose(made)
    return made
