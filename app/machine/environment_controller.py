"""Control of *Set up PyTorch…*: makes an environment in a worker thread, chooses it, and tells who needs to know."""

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
from app.threads.newest_answer import NewestAnswer
from core.errors import RankdeckError, sentences

if TYPE_CHECKING:
    # The window opens without these: downloads bring TLS and an HTTP client along.
    from app.machine.environment_dialog import EnvironmentDialog
    from app.machine.environment_text import Offered
    from app.window.main_window import MainWindow
    from core.environments.make import Progress
    from core.environments.places import Places
    from core.environments.plan import Wanted
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
        self._own = OperationRunner(self)  # what pip is asked must not hold up what else is to be looked at
        self._driver: NvidiaDriver | None = None
        self._making = Measuring(self)
        self._sizes: NewestAnswer[tuple[str, str]] = NewestAnswer(
            self._own, self._show_sizes, lambda _: ("", ""), self, is_kept=any, kept=1, after_ms=0, is_watched=True
        )
        self.dialog: EnvironmentDialog | None = None
        own = importlib.util.find_spec("torch") is not None  # finds, does not import
        why_not = "This window's Python has PyTorch, so runs are trained with it." if own else None
        explain(window.actions_.environment, why_not)
        window.actions_.environment.triggered.connect(self.open)
        window.welcome.set_up.clicked.connect(self.open)
        window.welcome.set_up_another.clicked.connect(self.open)
        self._making.progressed.connect(self._on_progressed)
        self._making.found.connect(self._on_made)
        self._making.failed.connect(self._on_failed)

    def open(self) -> None:
        """Looks at this machine's drives, driver and cards, then opens the dialog."""
        if self.dialog is None:
            self._runner.run(Operation(self._look, self._open, self._window.notice.show_error, topic="driver"))

    def _look(self) -> tuple[Offered, NvidiaDriver | None]:
        """In a worker thread: the driver takes seconds to answer, and a drive may have to start."""
        from app.machine.environment_text import Offered
        from core.environments.differences import present_differences
        from core.environments.extras import list_extras
        from core.environments.places import current_places
        from core.machine.drives import free_bytes, list_drives
        from core.machine.packages import find_extras
        from core.machine.torch_builds import choose_build, has_nvidia_driver, read_driver
        from core.recipes.catalog import find_recipes

        driver = read_driver() if has_nvidia_driver(sys.platform) else None
        places = current_places()
        extras = list_extras(find_recipes(), find_extras())
        drives, free = tuple(list_drives()), free_bytes(places.environments)
        return Offered(choose_build(driver), extras, places, drives, free, present_differences()), driver

    def close(self) -> None:
        """Stops making an environment and waits a bounded time for its programs."""
        self._making.close()
        self._sizes.close()
        self._own.close()

    def _open(self, found: tuple[Offered, NvidiaDriver | None]) -> None:
        from app.machine.environment_dialog import EnvironmentDialog

        offered, self._driver = found
        self.dialog = dialog = EnvironmentDialog(offered, self._window)
        dialog.choice_changed.connect(self._on_choice_changed)
        dialog.start_requested.connect(self._on_start_requested)
        dialog.stop_requested.connect(self._making.stop)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_choice_changed(self, places: Places, extras: tuple[str, ...], wheels: Path | None) -> None:
        """Asks pip how large it is; a question that is still open is no longer wanted."""
        key, driver = f"{places} {extras} {wheels}", self._driver

        def work() -> tuple[str, str]:
            return find_sizes(places.environments, extras, wheels, driver, lambda: not self._sizes.is_newest(key))

        self._sizes.ask(key, work)

    def _show_sizes(self, sizes: tuple[str, str]) -> None:
        if self.dialog is not None and sizes[0]:
            self.dialog.show_sizes(*sizes)

    def _on_start_requested(self, places: Places, extras: tuple[str, ...], wheels: Path | None) -> None:
        self._sizes.ask("", None)
        self._making.start(functools.partial(_make, places, extras, wheels, self._driver))

    def _on_progressed(self, progress: Progress) -> None:
        from app.machine.environment_text import share_of

        if self.dialog is not None:
            self.dialog.show_progress(progress.text, share_of(progress))

    def _on_made(self, made: Environment | None) -> None:
        if made is not None:
            self.made.emit()
        if self.dialog is None:
            return
        if made is None:
            self.dialog.show_stopped()
        else:
            self.dialog.show_done(f"PyTorch {made.record.torch} is ready. You can start a run now.")

    def _on_failed(self, error: RankdeckError) -> None:
        if self.dialog is not None:
            self.dialog.show_error(error)

    def _on_closed(self, _result: int) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = None
        self._sizes.ask("", None)
        self._sizes.forget()


def _make(
    places: Places,
    extras: tuple[str, ...],
    wheels: Path | None,
    driver: NvidiaDriver | None,
    tell: Tell,
    cancelled: Cancelled,
) -> Environment | None:
    """Makes an environment, in a worker thread, and chooses it; None where it was stopped."""
    from core.environments.differences import find_suitable
    from core.environments.downloads import CancelledError
    from core.environments.make import make
    from core.environments.places import keep_places
    from core.environments.record import choose, free_folder
    from core.environments.wanted import default_name

    keep_places(places)
    name = default_name("auto", driver)
    made = find_suitable(places.environments, name, extras)
    if made is None:  # else it was only not chosen
        wanted = _wanted(free_folder(places.environments, name), extras, wheels, driver)
        try:
            made = make(wanted, tell, cancelled)
        except CancelledError:
            return None
    choose(made)
    return made


def find_sizes(
    parent: Path,
    extras: tuple[str, ...],
    wheels: Path | None,
    driver: NvidiaDriver | None,
    cancelled: Cancelled,
) -> tuple[str, str]:
    """How large an environment would be, and why there is no room for it; both as text.

    Args:
        parent: Where environments are kept.
        extras: Names of its extras.
        wheels: A folder to take everything from.
        driver: The NVIDIA driver.
        cancelled: Asked meanwhile; both are empty then.
    """
    from app.machine.environment_text import size_text
    from core.environments.downloads import CancelledError
    from core.environments.make import check_disk, look
    from core.environments.record import folder_of
    from core.environments.wanted import default_name
    from core.machine.drives import free_bytes

    folder = folder_of(parent, default_name("auto", driver))
    free = free_bytes(folder)
    try:
        plan = look(_wanted(folder, extras, wheels, driver), cancelled)
    except CancelledError:
        return "", ""
    except RankdeckError as error:
        return size_text("Size unknown.", free, folder), sentences(error.cause, error.window_step)
    if plan is None:
        return size_text("Size unknown: no pip here can tell before it downloads.", free, folder), ""
    try:
        check_disk(plan, folder)
    except RankdeckError as error:
        return size_text(plan.text, free, folder), sentences(error.cause, error.window_step)
    return size_text(plan.text, free, folder), ""


def _wanted(folder: Path, extras: tuple[str, ...], wheels: Path | None, driver: NvidiaDriver | None) -> Wanted:
    from core.environments.wanted import wanted_for
    from core.machine.torch_builds import ENV_TORCH_INDEX

    return wanted_for(folder, "auto", extras, driver, os.environ.get(ENV_TORCH_INDEX) or None, wheels)
