"""Removal of runs: to the system's recycle bin, or for good where that does not take them, off the GUI thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMessageBox

from app.runs.run_list import RunList
from app.runs.runs_panel import RunsPanel
from app.shown_run.shown_run_controller import ShownRunController
from app.threads.background import Operation, OperationRunner
from app.widgets.notice_bar import Step
from core.errors import PreflightError, RankdeckError
from core.run_folder.removal import NoRecycleBinError, delete_run, recycle_run
from core.run_folder.store import RunStore

# Windows moves no folder with an open file: the reader of the run that was shown has this long to close its files.
LET_GO_S: Final = 2.0
RETRY_S: Final = 0.1
WHERE: Final = "Restore it from the recycle bin of your system if you need it again."


@dataclass(frozen=True, slots=True)
class Removal:
    """Runs that were removed at once.

    Attributes:
        shown: The one of them all that was shown.
        problem: Why the rest stayed.
    """

    gone: tuple[Path, ...]
    left: tuple[Path, ...]
    shown: Path | None
    problem: RankdeckError | None = None


class RunRemovalController(QObject):
    """Removes the runs that the list asks to remove.

    Attributes:
        question: Asks before runs are deleted for good; None before the first.
    """

    def __init__(
        self,
        panel: RunsPanel,
        runs: RunList,
        showing: ShownRunController,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._runs = runs
        self._showing = showing
        self._runner = runner
        self.question: QMessageBox | None = None
        self._panel.removal_requested.connect(self.remove)

    def remove(self, folders: Sequence[Path], act: Callable[[RunStore], None] = recycle_run) -> None:
        """Removes runs; if the shown one goes, the next one is shown."""
        wanted, shown = tuple(folders), self._showing.run_dir
        shown = shown if shown in wanted else None
        if shown is not None:
            following = self._panel.next_run(wanted)
            self._showing.show(following) if following is not None else self._showing.show_none()

        def work() -> Removal:
            for number, folder in enumerate(wanted):
                try:
                    _remove(folder, act)
                except RankdeckError as error:
                    return Removal(wanted[:number], wanted[number:], shown, error)
            return Removal(wanted, (), shown)

        self._runner.run(Operation(work, self._on_removed, self._panel.notice.show_error))

    def _on_removed(self, removal: Removal) -> None:
        names = self._runs.model.names()
        self._runs.model.remove(removal.gone)
        self._runs.refresh()
        if removal.shown in removal.left:
            self._showing.show(removal.shown)
        if removal.problem is not None:
            is_refused = isinstance(removal.problem, NoRecycleBinError)
            step = Step("&Delete for good…", lambda: self._ask(removal.left, names)) if is_refused else None
            self._panel.notice.show_error(removal.problem, step)
        elif removal.gone:
            count = len(removal.gone)
            one = f"“{names.get(removal.gone[0], removal.gone[0].name)}” was removed"
            self._panel.notice.say("info", one if count == 1 else f"{count} runs were removed", WHERE)

    def _ask(self, folders: Sequence[Path], names: dict[Path, str]) -> None:
        what = f"“{names.get(folders[0], folders[0].name)}”" if len(folders) == 1 else f"{len(folders)} runs"
        self.question = box = QMessageBox(self._panel.window())
        box.setIcon(QMessageBox.Icon.Warning)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setWindowTitle("Delete for good")
        box.setText(f"Delete {what} for good?")
        box.setInformativeText("Metrics, checkpoints and logs are deleted. This cannot be undone.")
        delete = box.addButton("&Delete for good", QMessageBox.ButtonRole.DestructiveRole)
        delete.clicked.connect(lambda: self.remove(folders, delete_run))
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        box.open()


def _remove(folder: Path, act: Callable[[RunStore], None]) -> None:
    """Remove a run once its readers have let its files go."""
    end = time.monotonic() + LET_GO_S
    while True:
        try:
            return act(RunStore.open(folder))
        except NoRecycleBinError:
            raise
        except PreflightError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_S)
