"""Opens a run's folder, and reports on exports."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.threads.background import Operation, OperationRunner
from app.widgets.notice_bar import Step
from app.widgets.open_outside import open_path
from core.export import KINDS
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.actions.actions import Actions
    from app.run.outcome_card import OutcomeCard
    from app.runs.runs_panel import RunsPanel
    from app.shown_run.shown_run_controller import ShownRunController
    from app.widgets.floating_notice import FloatingNotice
    from core.errors import RankdeckError
    from core.export.export import Exported


class RunFilesController(QObject):
    """Carries out the window's actions on the shown run's files; exports go to `exports` in its folder."""

    def __init__(
        self,
        actions: Actions,
        notice: FloatingNotice,
        panel: RunsPanel,
        outcome: OutcomeCard,
        showing: ShownRunController,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._notice = notice
        self._showing = showing
        self._runner = runner
        self._closing = threading.Event()
        self._going: set[tuple[Path, str]] = set()
        actions.folder.triggered.connect(self._on_folder_requested)
        actions.copy_path.triggered.connect(self._on_copy_path_requested)
        outcome.copy_requested.connect(self._copy)
        for kind, action in actions.exports.items():
            action.triggered.connect(functools.partial(self._on_export_requested, kind))
        panel.export_requested.connect(self.export)
        panel.folder_requested.connect(open_path)

    def _on_folder_requested(self) -> None:
        if self._showing.run_dir is not None:
            open_path(self._showing.run_dir, self._notice)

    def _on_copy_path_requested(self) -> None:
        if self._showing.run_dir is not None:
            self._copy(str(self._showing.run_dir))

    def _copy(self, path: str) -> None:
        QGuiApplication.clipboard().setText(path)
        self._notice.say_briefly("Path copied", path)

    def _on_export_requested(self, kind: str) -> None:
        if self._showing.run_dir is not None:
            self.export(self._showing.run_dir, kind)

    def export(self, run_dir: Path, kind: str) -> None:
        """Export a run, unless just this export of it is under way."""
        key = (run_dir, kind)
        if key in self._going:
            return

        def work() -> Exported:
            from core.export.export import export_run  # here: the window opens without it

            return export_run(RunStore.open(run_dir), kind, cancelled=self._closing.is_set)

        def done(made: Exported) -> None:
            self._going.discard(key)
            folder = made.path if made.path.is_dir() else made.path.parent
            text = "\n".join((str(made.path), *made.details))
            step = Step("Open &folder", lambda: open_path(folder, self._notice))
            self._notice.say("success", f"Exported {run_dir.name}: {KINDS[made.kind]}", text, step)

        def failed(error: RankdeckError) -> None:
            from core.export.lines import ExportCancelledError

            self._going.discard(key)
            if not isinstance(error, ExportCancelledError):
                self._notice.show_error(error)

        self._going.add(key)
        self._notice.say("info", f"Exporting {run_dir.name}", f"{KINDS[kind]} …")
        self._runner.run(Operation(work, done, failed))

    def close(self) -> None:
        """Ends the exports that can be ended; unfinished files are removed."""
        self._closing.set()
