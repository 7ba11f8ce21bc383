"""Compares runs: reads them in the background, and keeps their page up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

from app.threads.background import Operation, OperationRunner
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.compare.compare_page import ComparePage
    from app.compare.whole_run import RunReader
    from app.run_data.metrics_batch import MetricsBatch
    from app.run_data.run_series import RunSeries
    from app.settings import Settings
    from app.window.main_window import MainWindow
    from core.compare.comparison import Comparison
    from core.errors import RankdeckError

T = TypeVar("T")
LIVE_S: Final = 1.0
# Live runs are read for at most a twentieth of the time.
LEAST_PAUSE: Final = 20.0


@dataclass(frozen=True, slots=True)
class _New:
    """What was written since the last look."""

    batches: tuple[list[MetricsBatch], ...]
    comparison: Comparison | None
    took_s: float


@dataclass(slots=True)
class _Shown:
    """The comparison that is shown.

    Attributes:
        readers: One a run, in the page's order.
        comparison: The newest; None until the runs are read.
    """

    page: ComparePage
    readers: list[RunReader] = field(default_factory=list)
    comparison: Comparison | None = None
    is_reading: bool = False


class CompareController(QObject):
    """Carries out *Compare runs*, and shows one comparison at a time."""

    def __init__(
        self, window: MainWindow, runner: OperationRunner, settings: Settings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._runner = runner
        self._settings = settings
        self._shown: _Shown | None = None
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._on_due)
        window.actions_.compare.triggered.connect(self._on_compare_requested)
        window.runs.compare_requested.connect(self.compare)
        window.page_shown.connect(self._on_page_shown)

    @property
    def page(self) -> ComparePage | None:
        return None if self._shown is None else self._shown.page

    def compare(self, folders: Sequence[Path]) -> None:
        from app.compare.compare_page import ComparePage  # here: the window opens without it
        from app.plots.curve_options import FIRST_SMOOTHING

        smoothing = self._window.plot_settings().get("smoothing_steps")  # not of the plots: they may not be made yet
        page = ComparePage(len(folders), smoothing if isinstance(smoothing, int) else FIRST_SMOOTHING, self._settings)
        shown = self._shown = _Shown(page)
        page.close_requested.connect(self._window.show_home)
        self._window.show_page(page)
        self._open(shown, list(folders))

    def _on_compare_requested(self) -> None:
        paths, why_not = self._window.runs.compared()
        if why_not:
            self._window.notice.say("info", "Choose the runs to compare", why_not)
        else:
            self.compare(paths)

    # --- reading -----------------------------------------------------------------------------------------

    def _open(self, shown: _Shown, folders: list[Path]) -> None:
        def work() -> tuple[Comparison, tuple[RunSeries, ...]]:
            # Here, as other parts: the window opens without it.
            from app.compare.whole_run import RunReader
            from core.compare.comparison import compare_runs

            found = compare_runs([RunStore(folder.absolute()) for folder in folders])
            shown.readers = [RunReader(RunStore(path)) for path in found.paths]
            return found, tuple(reader.open() for reader in shown.readers)

        def show(read: tuple[Comparison, tuple[RunSeries, ...]]) -> None:
            from app.compare.run_overlay import OverlaidRun

            shown.comparison, series = read
            shown.page.show_runs(shown.comparison, list(map(OverlaidRun, shown.comparison.labels, series)))
            self._show_notes(shown)
            self._timer.start(round(1000 * LIVE_S))

        self._start(shown, work, show, shown.page.show_failure)

    def _on_due(self) -> None:
        shown = self._shown
        if shown is None or not self._is_current(shown) or shown.comparison is None:
            return
        if any(shown.comparison.live) and shown.page.isVisible() and not shown.is_reading:
            self._read_new(shown, shown.comparison.paths)
        else:
            self._timer.start(round(1000 * LIVE_S))

    def _read_new(self, shown: _Shown, paths: Sequence[Path]) -> None:
        def work() -> _New:
            from core.compare.comparison import compare_runs

            began = time.monotonic()
            batches = tuple(reader.read_new() for reader in shown.readers)
            are_there = all(path.is_dir() for path in paths)
            found = compare_runs([RunStore(path) for path in paths]) if are_there else None
            return _New(batches, found, time.monotonic() - began)

        self._start(shown, work, lambda new: self._show_new(shown, new))

    def _show_new(self, shown: _Shown, new: _New) -> None:
        for run, batches in zip(shown.page.runs, new.batches, strict=True):
            for batch in batches:
                run.series.apply(batch)
        if new.comparison is not None:
            shown.comparison = new.comparison
            shown.page.show_comparison(new.comparison)
        self._show_notes(shown)
        if any(new.batches):
            shown.page.draw_new()
        self._timer.start(round(1000 * max(LIVE_S, LEAST_PAUSE * new.took_s)))

    def _show_notes(self, shown: _Shown) -> None:
        if shown.comparison is not None:
            labels = shown.comparison.labels
            parts = zip(labels, shown.readers, shown.page.runs, strict=True)
            notes = [(label, _note(reader, run.series)) for label, reader, run in parts]
            known = "".join(shown.comparison.notes)
            own = [f"“{label}” {note}" for label, note in notes if note and f"“{label}”" not in known]
            shown.page.show_notes([*shown.comparison.notes, *own])

    def _start(
        self,
        shown: _Shown,
        work: Callable[[], T],
        show: Callable[[T], None],
        fail: Callable[[RankdeckError], None] | None = None,
    ) -> None:
        def done(result: T) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                show(result)

        def failed(error: RankdeckError) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                fail(error) if fail is not None else shown.page.show_notes([error.cause])
                self._timer.start(round(1000 * LIVE_S))

        shown.is_reading = True
        self._runner.run(Operation(work, done, failed))

    # --- closing -----------------------------------------------------------------------------------------

    def _is_current(self, shown: _Shown) -> bool:
        return shown is self._shown and isValid(shown.page)

    def _on_page_shown(self, page: object) -> None:
        """Lets the comparison go, with all that was read for it, once another page is in front."""
        if self._shown is not None and page is not self._shown.page:
            self._timer.stop()
            self._window.drop_page(self._shown.page)
            self._shown = None


def _note(reader: RunReader, series: RunSeries) -> str:
    if reader.problem:
        return f"cannot be read any further: {reader.problem}"
    return "" if series.ranks() or series.evals.rows else "has reported no metric yet."
