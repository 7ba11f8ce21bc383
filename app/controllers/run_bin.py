"""Bin of runs: removes runs, takes a removal back, and carries out what its dialog asks for, off the GUI thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.controllers.background import Operation, OperationRunner
from app.controllers.shown_run import Showing
from app.models.run_list import RunList
from app.views.window.main_window import MainWindow
from core.errors import PreflightError, RankdeckError
from core.run_folder.bin import BinnedRun, delete_binned, folder_bytes, list_bin, remove_run, restore_run
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.views.dialogs.bin_dialog import BinDialog

LET_GO_S: Final = 2.0
"""Windows moves no folder with an open file: the reader of the run that was shown has this long to close its files."""
RETRY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Removal:
    """Runs that went to the bin at once.

    Attributes:
        runs: Where they were, and where they are in the bin.
        shown: The one of them that was shown.
        problem: Why the rest stayed.
    """

    runs: tuple[tuple[Path, Path], ...] = ()
    shown: Path | None = None
    problem: RankdeckError | None = None


class RunBin(QObject):
    """Moves runs to the bin and back, and deletes them for good.

    Attributes:
        dialog: Shows the bin; None while it is closed.
    """

    def __init__(
        self,
        window: MainWindow,
        runs: RunList,
        showing: Showing,
        runner: OperationRunner,
        runs_dir: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._panel = window.runs
        self._runs = runs
        self._showing = showing
        self._runner = runner
        self._runs_dir = runs_dir
        self._last = Removal()
        self.dialog: BinDialog | None = None
        self._panel.removal_requested.connect(self.remove)
        self._panel.undo_requested.connect(self.undo)
        self._panel.bin_requested.connect(self.open)
        window.actions_.bin.triggered.connect(self.open)

    # --- removing ----------------------------------------------------------------------------------------

    def remove(self, folders: Sequence[Path]) -> None:
        """Moves runs to the bin; if the shown one goes, the next one is shown."""
        wanted, shown = tuple(folders), self._showing.run_dir
        shown = shown if shown in wanted else None
        if shown is not None:
            self._show(self._panel.next_run(wanted))

        def work() -> Removal:
            moved: list[tuple[Path, Path]] = []
            for folder in wanted:
                try:
                    moved.append((folder, _removed(folder)))
                except RankdeckError as error:
                    return Removal(tuple(moved), shown, error)
            return Removal(tuple(moved), shown)

        self._runner.run(Operation(work, self._on_removed, self._panel.notice.show_error))

    def undo(self) -> None:
        """Puts the runs of the last removal back, and shows the one that was shown."""
        last, self._last = self._last, Removal()
        if not last.runs:
            return

        def work() -> list[tuple[Path, Path]]:
            return [(folder, restore_run(binned)) for folder, binned in last.runs]

        def done(restored: list[tuple[Path, Path]]) -> None:
            self._runs.refresh()
            self._panel.show_restored(f"{_runs_were(len(restored))} put back")
            again = dict(restored).get(last.shown) if last.shown is not None else None
            if again is not None:
                self._showing.show(again)

        def failed(error: RankdeckError) -> None:
            self._runs.refresh()
            self._panel.notice.show_error(error)

        self._runner.run(Operation(work, done, failed))

    def _on_removed(self, removal: Removal) -> None:
        gone = [folder for folder, _ in removal.runs]
        names = self._runs.model.names()
        self._runs.model.remove(gone)
        self._runs.refresh()
        if removal.shown is not None and removal.shown not in gone:
            self._showing.show(removal.shown)
        if gone:
            self._last = removal
            one = f"“{names.get(gone[0], gone[0].name)}” is in the bin"
            self._panel.show_removed(one if len(gone) == 1 else f"{len(gone)} runs are in the bin")
        if removal.problem is not None:
            self._panel.notice.show_error(removal.problem)

    def _show(self, run_dir: Path | None) -> None:
        if run_dir is None:
            self._showing.show_none()
        else:
            self._showing.show(run_dir)

    # --- the dialog --------------------------------------------------------------------------------------

    def open(self) -> None:
        """Shows what is in the bin."""
        from app.views.dialogs.bin_dialog import BinDialog  # here: the window opens without it

        dialog = self.dialog = BinDialog(self._window)
        dialog.restore_requested.connect(self._on_restore_requested)
        dialog.deletion_requested.connect(self._on_deletion_requested)
        dialog.finished.connect(self._on_dialog_closed)
        dialog.open()
        self._list()

    def _on_dialog_closed(self) -> None:
        self.dialog = None

    def _list(self) -> None:
        """Reads the bin, then counts what is in it."""

        def show(runs: list[BinnedRun]) -> None:
            if self.dialog is not None:
                self.dialog.show_runs(runs)
                self._count([run.path for run in runs])

        self._runner.run(Operation(lambda: list_bin(self._runs_dir), show, self._show_error, "bin"))

    def _count(self, folders: Collection[Path]) -> None:
        def show(sizes: dict[Path, int]) -> None:
            if self.dialog is not None:
                self.dialog.show_sizes(sizes)

        self._runner.run(
            Operation(lambda: {path: folder_bytes(path) for path in folders}, show, self._show_error, "bin sizes")
        )

    def _on_restore_requested(self, folders: Sequence[Path]) -> None:
        self._work_on(folders, restore_run)

    def _on_deletion_requested(self, folders: Sequence[Path]) -> None:
        self._work_on(folders, lambda path: delete_binned([path]))

    def _work_on(self, folders: Sequence[Path], act: Callable[[Path], object]) -> None:
        """Does something with each run, and shows what is in the bin then."""
        if self.dialog is not None:
            self.dialog.notice.clear()
            self.dialog.set_busy(True)
        self._forget(folders)

        def work() -> None:
            for path in folders:
                act(path)

        def done(_: None) -> None:
            self._runs.refresh()
            self._list()

        def failed(error: RankdeckError) -> None:
            done(None)
            self._show_error(error)

        self._runner.run(Operation(work, done, failed))

    def _forget(self, binned: Collection[Path]) -> None:
        """Offers no undo any more for runs that leave the bin."""
        left = tuple(run for run in self._last.runs if run[1] not in binned)
        if left != self._last.runs:
            self._last = replace(self._last, runs=left)
            if not left:
                self._panel.forget_removed()

    def _show_error(self, error: RankdeckError) -> None:
        if self.dialog is not None:
            self.dialog.notice.show_error(error)
            self.dialog.set_busy(False)
        else:
            self._panel.notice.show_error(error)


def _runs_were(count: int) -> str:
    return "1 run was" if count == 1 else f"{count} runs were"


def _removed(folder: Path) -> Path:
    """Moves a run to the bin, once its readers have let its files go."""
    end = time.monotonic() + LET_GO_S
    while True:
        try:
            return remove_run(RunStore.open(folder))
        except PreflightError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_S)
