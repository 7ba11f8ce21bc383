"""Exports the shown run in the background."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.controllers.background import Operation, OperationRunner
from core.errors import RankdeckError
from core.export.lines import ExportCancelledError
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from core.export.export import Exported


class Exporting(QObject):
    """One run to tables, event files or weights, below `exports` in its folder.

    Signals:
        begun: ``(run folder, kind)``.
        exported: ``(run folder, Exported)``.
        failed: Why it could not be done.
    """

    begun = Signal(object, str)
    exported = Signal(object, object)
    failed = Signal(object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._closing = threading.Event()
        self._going: set[tuple[Path, str]] = set()

    def export(self, run_dir: Path, kind: str) -> None:
        """Begins; does nothing where just this is going on already."""
        key = (run_dir, kind)
        if key in self._going:
            return
        self._going.add(key)

        def work() -> Exported:
            from core.export.export import export_run  # here: the window opens without it

            return export_run(RunStore.open(run_dir), kind, cancelled=self._closing.is_set)

        def done(made: Exported) -> None:
            self._going.discard(key)
            self.exported.emit(run_dir, made)

        def failed(error: RankdeckError) -> None:
            self._going.discard(key)
            if not isinstance(error, ExportCancelledError):
                self.failed.emit(error)

        self.begun.emit(run_dir, kind)
        self._runner.run(Operation(work, done, failed))

    def close(self) -> None:
        """Ends what can be ended; what is half made is removed."""
        self._closing.set()
