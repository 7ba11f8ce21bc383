"""Renames the shown run."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.background import Operation, OperationRunner
from app.controllers.shown_run import Showing
from app.models.run_list import RunList
from app.views.window.main_window import MainWindow
from core.run_folder.notes import read_notes, write_notes


class Renaming(QObject):
    """Writes the name that was typed in the run's header into the run's notes."""

    def __init__(
        self,
        window: MainWindow,
        showing: Showing,
        runs: RunList,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._showing = showing
        self._runs = runs
        self._runner = runner
        window.header.renamed.connect(self._on_renamed)

    def _on_renamed(self, name: str) -> None:
        run_dir = self._showing.run_dir
        if run_dir is None:
            return

        def work() -> None:
            write_notes(run_dir, read_notes(run_dir).renamed(name))

        def done(_: None) -> None:
            self._runs.refresh()

        self._runner.run(Operation(work, done, self._window.notice.show_error))
