"""Keeps order among the runs: names, pins, tags and notes, all in the runs' own folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from app.runs.run_list import RunList
from app.runs.runs_panel import RunsPanel
from app.shown_run.shown_run_controller import ShownRunController
from app.threads.background import Operation, OperationRunner
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.run_folder.notes import RunNotes, read_notes, write_notes
from core.run_folder.store import RunEntry, RunStore

Change = Callable[[RunNotes], RunNotes]


class RunNotesController(QObject):
    """Carries out the intents of the runs list, off the GUI thread.

    Args:
        copy_settings: Fills New run with the settings of the run in a folder.
    """

    def __init__(
        self,
        panel: RunsPanel,
        runs: RunList,
        showing: ShownRunController,
        copy_settings: Callable[[RunConfig, Path], None],
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._runs = runs
        self._showing = showing
        self._copy_settings = copy_settings
        self._runner = runner
        self._listed: dict[Path, str] = {}
        panel.edits.changed.connect(self._change)
        runs.listed.connect(self._on_listed)
        panel.settings_copy_requested.connect(self._on_settings_copy_requested)

    # --- notes -------------------------------------------------------------------------------------------

    def _change(self, folders: Sequence[Path], change: Change) -> None:
        """Reads, changes and writes each run's notes; the list shows them as soon as they are written."""
        wanted = tuple(folders)

        def work() -> tuple[dict[Path, RunNotes], RankdeckError | None]:
            written: dict[Path, RunNotes] = {}
            problem = None
            for folder in wanted:
                try:
                    before = read_notes(folder)
                    after = change(before)
                    if after != before:  # else an empty name would make an empty file
                        write_notes(folder, after)
                    written[folder] = after
                except RankdeckError as error:
                    problem = problem or error
            return written, problem

        def done(result: tuple[dict[Path, RunNotes], RankdeckError | None]) -> None:
            written, problem = result
            self._runs.model.set_notes(written)
            self._runs.refresh()
            if problem is not None:
                self._panel.notice.show_error(problem)

        self._runner.run(Operation(work, done, self._panel.notice.show_error))

    def _on_listed(self, entries: Sequence[RunEntry]) -> None:
        """Stops showing a run whose folder was moved or deleted elsewhere."""
        shown, before = self._showing.run_dir, self._listed
        self._listed = {record.path: record.label for record in self._runs.model.records()}
        if shown is None or shown not in before or any(entry.path == shown for entry in entries):
            return
        # The list may be from the moment between a removal and its undo.
        if not shown.exists():
            self._showing.show_none()
            self._panel.notice.say("info", f"“{before[shown]}” was moved or deleted elsewhere")

    # --- settings ----------------------------------------------------------------------------------------

    def _on_settings_copy_requested(self, run_dir: Path) -> None:
        def done(config: RunConfig) -> None:
            self._copy_settings(config, run_dir)

        work, failed = lambda: RunStore.open(run_dir).config(), self._panel.notice.show_error
        self._runner.run(Operation(work, done, failed, "copied settings"))
