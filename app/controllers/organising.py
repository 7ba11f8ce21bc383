"""Keeps order among the runs: names, pins, tags, notes and the bin, all in the runs' own folders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject

from app.controllers.background import Operation, OperationRunner
from app.controllers.run_display import RunDisplay
from app.controllers.shown_run import Showing
from app.models.run_list import RunList
from app.views.window.main_window import MainWindow
from core.config.run_config import RunConfig
from core.errors import PreflightError, RankdeckError
from core.run_folder.bin import remove_run, restore_run
from core.run_folder.notes import RunNotes, read_notes, write_notes
from core.run_folder.store import RunEntry, RunStore

LET_GO_S: Final = 2.0
"""Windows moves no folder with an open file: the reader of the run that was shown has this long to close its files."""
RETRY_S: Final = 0.1
Change = Callable[[RunNotes], RunNotes]


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


class Organising(QObject):
    """Carries out what the runs list asks for, off the GUI thread."""

    def __init__(
        self,
        window: MainWindow,
        runs: RunList,
        showing: Showing,
        display: RunDisplay,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel = window.runs
        self._runs = runs
        self._showing = showing
        self._display = display
        self._runner = runner
        self._last = Removal()
        self._listed: dict[Path, str] = {}
        panel = window.runs
        panel.rename_requested.connect(self._on_rename_requested)
        window.header.renamed.connect(self._on_title_renamed)
        panel.pin_requested.connect(self._on_pin_requested)
        panel.tags_requested.connect(self._on_tags_requested)
        panel.note_requested.connect(self._on_note_requested)
        panel.removal_requested.connect(self.remove)
        panel.undo_requested.connect(self.undo)
        runs.listed.connect(self._on_listed)
        panel.settings_copy_requested.connect(self._on_settings_copy_requested)

    # --- notes -------------------------------------------------------------------------------------------

    def _on_rename_requested(self, run_dir: Path, name: str) -> None:
        self._change((run_dir,), lambda notes: notes.renamed(name))

    def _on_title_renamed(self, name: str) -> None:
        if self._showing.run_dir is not None:
            self._on_rename_requested(self._showing.run_dir, name)

    def _on_pin_requested(self, folders: Sequence[Path], pinned: bool) -> None:
        self._change(folders, lambda notes: replace(notes, pinned=pinned))

    def _on_tags_requested(self, folders: Sequence[Path], added: Sequence[str], removed: Sequence[str]) -> None:
        self._change(folders, lambda notes: notes.tagged(added, removed))

    def _on_note_requested(self, run_dir: Path, note: str) -> None:
        self._change((run_dir,), lambda notes: notes.noted(note))

    def _change(self, folders: Sequence[Path], change: Change) -> None:
        """Reads, changes and writes each run's notes; the list shows them as soon as they are written."""
        wanted = tuple(folders)

        def work() -> tuple[dict[Path, RunNotes], RankdeckError | None]:
            written: dict[Path, RunNotes] = {}
            problem = None
            for folder in wanted:
                try:
                    written[folder] = change(read_notes(folder))
                    write_notes(folder, written[folder])
                except RankdeckError as error:
                    written.pop(folder, None)
                    problem = problem or error
            return written, problem

        def done(result: tuple[dict[Path, RunNotes], RankdeckError | None]) -> None:
            written, problem = result
            self._runs.model.set_notes(written)
            self._runs.refresh()
            if problem is not None:
                self._panel.notice.show_error(problem)

        self._runner.run(Operation(work, done, self._panel.notice.show_error))

    # --- the bin -----------------------------------------------------------------------------------------

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
            self._panel.show_restored(
                "1 run was put back" if len(restored) == 1 else f"{len(restored)} runs were put back"
            )
            again = dict(restored).get(last.shown) if last.shown is not None else None
            if again is not None:
                self._showing.show(again)

        def failed(error: RankdeckError) -> None:
            self._runs.refresh()
            self._panel.notice.show_error(error)

        self._runner.run(Operation(work, done, failed))

    def _on_removed(self, removal: Removal) -> None:
        gone = [folder for folder, _ in removal.runs]
        names = {row.path: row.record.label for row in self._runs.model.rows()}
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

    def _on_listed(self, entries: Sequence[RunEntry]) -> None:
        """Shows the shown run no longer once its folder was moved or deleted elsewhere."""
        shown, before = self._showing.run_dir, self._listed
        self._listed = {record.path: record.label for record in self._runs.model.records()}
        if shown is None or shown not in before or any(entry.path == shown for entry in entries):
            return
        if not shown.exists():  # the list may be from the moment between a removal and its undo
            self._showing.show_none()
            self._panel.notice.say("info", f"“{before[shown]}” was moved or deleted elsewhere")

    def _show(self, run_dir: Path | None) -> None:
        if run_dir is None:
            self._showing.show_none()
        else:
            self._showing.show(run_dir)

    # --- settings ----------------------------------------------------------------------------------------

    def _on_settings_copy_requested(self, run_dir: Path) -> None:
        def work() -> RunConfig:
            return RunStore.open(run_dir).config()

        def done(config: RunConfig) -> None:
            self._display.copy_settings(config, run_dir)

        self._runner.run(Operation(work, done, self._panel.notice.show_error, "copied settings"))


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
