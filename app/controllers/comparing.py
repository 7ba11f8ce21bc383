"""Compares runs: lets the user choose them, reads them in the background, and shows the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from shiboken6 import isValid

from app.controllers.background import Operation, OperationRunner
from app.controllers.shown_run import Showing
from app.run_data.run_series import RunSeries
from app.run_data.whole_run import read_series
from app.views.window.main_window import MainWindow
from core.run_folder.record import RunRecord, notes_of
from core.run_folder.store import RunStore, list_runs

if TYPE_CHECKING:
    from app.views.compare.compare_dialog import CompareDialog
    from core.compare.comparison import Comparison

PLOTTED = ("step", "ts", "loss", "tokens_per_s")


@dataclass(frozen=True, slots=True)
class _Read:
    comparison: Comparison
    series: tuple[RunSeries, ...]


class Comparing(QObject):
    """Carries out *Compare with…* and shows comparisons, each in a window of its own."""

    def __init__(
        self,
        window: MainWindow,
        showing: Showing,
        runner: OperationRunner,
        runs_dir: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._showing = showing
        self._runner = runner
        self._runs_dir = runs_dir
        window.actions_.compare.triggered.connect(self._on_compare_requested)

    def compare(self, folders: Sequence[Path]) -> None:
        """Reads two to eight runs and shows them beside each other."""
        self._read(list(folders), None)

    def _on_compare_requested(self) -> None:
        def work() -> list[tuple[Path, str]]:
            return [(e.path, RunRecord(e, notes_of(e.path)).label) for e in list_runs(self._runs_dir)]

        self._runner.run(Operation(work, self._choose, self._window.notice.show_error, "runs to compare"))

    def _choose(self, runs: list[tuple[Path, str]]) -> None:
        from app.views.dialogs.choose_runs_dialog import ChooseRunsDialog

        shown = self._showing.run_dir
        dialog = ChooseRunsDialog(runs, () if shown is None else (shown,), self._window)
        dialog.chosen.connect(self.compare)
        dialog.open()

    def _read(self, folders: list[Path], old: CompareDialog | None) -> None:
        def work() -> _Read:
            from core.compare.comparison import compare_runs  # here: the window opens without it

            stores = [RunStore.open(folder) for folder in folders]
            found = compare_runs(stores)
            return _Read(found, tuple(read_series(RunStore(path), PLOTTED) for path in found.paths))

        def show(read: _Read) -> None:
            self._show(folders, read, old)

        self._runner.run(Operation(work, show, self._window.notice.show_error, "comparison"))

    def _show(self, folders: list[Path], read: _Read, old: CompareDialog | None) -> None:
        from app.views.compare.compare_dialog import CompareDialog
        from app.views.plots.run_overlay import OverlaidRun

        if old is not None and not isValid(old):
            return  # closed while its runs were read again
        runs = [OverlaidRun(*pair) for pair in zip(read.comparison.labels, read.series, strict=True)]
        smoothing = self._window.plots.options.smoothing
        dialog = CompareDialog(read.comparison, runs, smoothing, self._window)
        dialog.refresh_requested.connect(lambda: self._read(folders, dialog))
        if old is not None:
            dialog.setGeometry(old.geometry())
            old.close()
        dialog.show()
