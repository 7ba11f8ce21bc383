"""Settings, About and the documentation: opens their windows and keeps the chosen settings."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from app.preferences.updates_controller import UpdatesController
from app.settings import NOTIFICATIONS, TRAY_ICON, Settings
from app.style.theme import Theme
from app.style.tones import is_dark
from app.threads.background import Operation, OperationRunner
from app.widgets.open_outside import open_path
from app.window.main_window import MainWindow
from core.environments.places import keep_folder, models_folder
from core.errors import RankdeckError
from core.files.atomic import explained
from core.paths import (
    HUB_VARIABLES,
    RUNS_VARIABLE,
    data_folder,
    default_runs_dir,
    models_dir_file,
    runs_dir_file,
    runs_dir_of_environment,
)

if TYPE_CHECKING:
    from app.preferences.settings_dialog import KeptFolder


class PreferencesController(QObject):
    """Carries out *Settings*, *About Rankdeck* and *Help*."""

    flag_changed = Signal(str)

    def __init__(
        self,
        window: MainWindow,
        settings: Settings,
        runs_dir: Path,
        updating: UpdatesController,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._updating = updating
        self._runner = runner
        self._first_page: Path | None = None
        self._window = window
        self._settings = settings
        self._runs_dir = runs_dir
        actions = window.actions_
        actions.settings.triggered.connect(self.show_settings)
        actions.about.triggered.connect(self.show_about)
        actions.theme.triggered.connect(lambda: self.choose_theme("light" if is_dark(window.palette()) else "dark"))
        actions.help.triggered.connect(self.show_docs)

    def show_settings(self) -> None:
        from app.preferences.settings_dialog import SettingsDialog

        off = [name for name in (NOTIFICATIONS, TRAY_ICON) if not self._settings.flag(name, True)]
        runs, models = kept_folders(self._runs_dir)
        dialog = SettingsDialog(self.theme, runs, models, off, self._updating.address, self._window)
        dialog.theme_chosen.connect(self.choose_theme)
        dialog.switched.connect(self._on_switched)
        for row, file, variable in (
            (dialog.runs, runs_dir_file, RUNS_VARIABLE),
            (dialog.models, models_dir_file, HUB_VARIABLES[0]),
        ):
            row.chosen.connect(functools.partial(self._on_folder_chosen, file, variable))
        dialog.updates_chosen.connect(self._updating.set_address)
        self._updating.answered.connect(dialog.show_update_answer)
        dialog.open()

    def show_about(self) -> None:
        from app.preferences.about_dialog import AboutDialog

        AboutDialog(self._window).open()

    def show_docs(self) -> None:
        """Open the documentation in the browser; each window writes its pages once."""

        def work() -> Path:
            from app.preferences.documentation import write_documentation

            with explained("The documentation could not be written"):
                return write_documentation(data_folder() / "documentation")

        def done(first: Path) -> None:
            self._first_page = first
            open_path(first, self._window.notice)

        if self._first_page is None:
            self._runner.run(Operation(work, done, self._window.notice.show_error, topic="documentation"))
        else:
            done(self._first_page)

    @property
    def theme(self) -> str:
        return self._settings.text("theme") or "system"

    def choose_theme(self, name: str) -> None:
        self._settings.set_text("theme", name)
        application = QApplication.instance()
        theme = application.findChild(Theme) if application is not None else None
        if theme is not None:
            theme.choose(name)

    def _on_switched(self, name: str, on: bool) -> None:
        self._settings.set_flag(name, on)
        self.flag_changed.emit(name)

    def _on_folder_chosen(self, file: Callable[[], Path], variable: str, folder: Path) -> None:
        try:
            keep_folder(file(), folder)
        except RankdeckError as error:
            step = f"Set the variable {variable} to the folder instead."
            self._window.notice.show_error(RankdeckError(error.cause, step, title="The folder could not be kept"))


def kept_folders(runs_dir: Path) -> tuple[KeptFolder, KeptFolder]:
    """The folders of runs and models; `runs_dir`: the window's own."""
    from app.preferences.settings_dialog import KeptFolder

    coming = default_runs_dir()
    is_fixed = runs_dir_of_environment() is not None
    runs = KeptFolder(
        "Runs",
        runs_dir,
        "The command line uses it too.",
        None if is_fixed or coming == runs_dir else coming,
        RUNS_VARIABLE if is_fixed else "",
    )
    variable = next((name for name in HUB_VARIABLES if os.environ.get(name, "").strip()), "")
    models = "Models and datasets of Hugging Face. What was downloaded stays where it is."
    return runs, KeptFolder("Models", models_folder(), models, fixed_by=variable)
