"""Compares runs: lets the user choose them, reads them in the background, and keeps their page up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

from app.threads.background import Operation, OperationRunner
from core.machine.devices.names import RankNames, device_label
from core.run_folder.record import RunRecord, notes_of
from core.run_folder.store import RunStore, list_runs, read_entry

if TYPE_CHECKING:
    from app.compare.compare_page import ComparePage
    from app.compare.whole_run import Bins, RunReader
    from app.devices.device_table import DeviceTable
    from app.run_data.metrics_batch import MetricsBatch
    from app.run_data.run_series import RunSeries
    from app.settings import Settings
    from app.shown_run.shown_run_controller import ShownRunController
    from app.window.main_window import MainWindow
    from core.compare.comparison import Comparison
    from core.errors import RankdeckError

T = TypeVar("T")
LIVE_S: Final = 1.0
# A live run is read again at most once a second, and the table at most for a twentieth of the time.
LEAST_PAUSE: Final = 20.0


@dataclass(frozen=True, slots=True)
class _Read:
    comparison: Comparison
    series: tuple[RunSeries, ...]
    devices: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _New:
    """What was written since: of each run, and the table where that was asked for."""

    batches: tuple[list[MetricsBatch], ...]
    comparison: Comparison | None
    took_s: float


@dataclass(slots=True)
class _Shown:
    """The comparison that is shown.

    Attributes:
        page: Where.
        readers: One a run, in the page's order.
        comparison: The newest; None until the runs are read.
        is_reading: Something of it is read just now.
        table_due_s: When the table may be made again, by the monotonic clock.
    """

    page: ComparePage
    readers: list[RunReader] = field(default_factory=list)
    comparison: Comparison | None = None
    is_reading: bool = False
    table_due_s: float = 0.0


class CompareController(QObject):
    """Carries out *Compare runs…*, and shows one comparison at a time."""

    def __init__(
        self,
        window: MainWindow,
        showing: ShownRunController,
        table: DeviceTable,
        runner: OperationRunner,
        runs_dir: Path,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._showing = showing
        self._table = table
        self._runner = runner
        self._runs_dir = runs_dir
        self._settings = settings
        self._shown: _Shown | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(round(LIVE_S * 1000))
        self._timer.timeout.connect(self._on_due)
        window.actions_.compare.triggered.connect(self._on_compare_requested)
        window.runs.compare_requested.connect(self.compare)
        window.page_shown.connect(self._on_page_shown)

    @property
    def page(self) -> ComparePage | None:
        """The page that is shown; None without one."""
        return None if self._shown is None else self._shown.page

    def compare(self, folders: Sequence[Path]) -> None:
        """Reads two to eight runs and shows them beside each other."""
        from app.compare.compare_page import ComparePage  # here: the window opens without it
        from app.plots.curve_options import FIRST_SMOOTHING

        smoothing = self._window.plot_settings().get("smoothing_steps")  # not of the plots: they may not be made yet
        page = ComparePage(len(folders), smoothing if isinstance(smoothing, int) else FIRST_SMOOTHING, self._settings)
        shown = self._shown = _Shown(page)
        page.close_requested.connect(self._window.show_home)
        page.refresh_requested.connect(lambda: self._read_new(shown, with_table=True))
        page.columns_wanted.connect(lambda names: self._read_columns(shown, names))
        self._window.show_page(page)
        self._open(shown, list(folders))

    # --- choosing ----------------------------------------------------------------------------------------

    def _on_compare_requested(self) -> None:
        def work() -> list[tuple[Path, str]]:
            return [(e.path, RunRecord(e, notes_of(e.path)).label) for e in list_runs(self._runs_dir)]

        self._runner.run(Operation(work, self._choose, self._window.notice.show_error, "runs to compare"))

    def _choose(self, runs: list[tuple[Path, str]]) -> None:
        from app.compare.choose_runs_dialog import ChooseRunsDialog

        shown = self._showing.run_dir
        dialog = ChooseRunsDialog(runs, () if shown is None else (shown,), self._window)
        dialog.chosen.connect(self.compare)
        dialog.open()

    # --- reading -----------------------------------------------------------------------------------------

    def _open(self, shown: _Shown, folders: list[Path]) -> None:
        def work() -> _Read:
            from app.compare.whole_run import RunReader  # here, as other parts: the window opens without it
            from core.compare.comparison import compare_runs

            found = compare_runs([RunStore(folder.absolute()) for folder in folders])
            shown.readers = [RunReader(RunStore(path)) for path in found.paths]
            return _Read(found, tuple(reader.open() for reader in shown.readers), tuple(map(_devices, found.paths)))

        def show(read: _Read) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                self._show(shown, read)

        def fail(error: RankdeckError) -> None:
            if self._is_current(shown):
                shown.page.show_failure(error)

        shown.is_reading = True
        self._runner.run(Operation(work, show, fail))

    def _show(self, shown: _Shown, read: _Read) -> None:
        from app.compare.run_overlay import OverlaidRun

        labels = {device.uuid: device_label(device) for device in self._table.devices}
        names = [RankNames(devices, labels) for devices in read.devices]
        runs = [OverlaidRun(*run) for run in zip(read.comparison.labels, read.series, names, strict=True)]
        shown.comparison = read.comparison
        shown.page.show_runs(read.comparison, runs)
        self._show_notes(shown)
        self._timer.start()

    def _read_columns(self, shown: _Shown, names: list[str]) -> None:
        """Makes the bins of the columns that cards wait for, one name after the other."""
        if shown.is_reading or shown.comparison is None or not self._is_current(shown):
            return
        from app.compare.whole_run import make_bins, take_bins

        runs = [(run.series, run.ranks) for run in shown.page.runs]

        def work() -> list[Bins]:
            return [make_bins(series, names[:1], ranks) for series, ranks in runs]

        def show(made: list[Bins]) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                for bins in made:
                    take_bins(bins)
                shown.page.draw_read()  # asks for the next one

        self._start(shown, work, show)

    def _on_due(self) -> None:
        """Reads new rows of live runs, once a second."""
        shown = self._shown
        if shown is None or not self._is_current(shown):
            self._timer.stop()
        elif shown.comparison is not None and any(shown.comparison.live) and shown.page.isVisible():
            self._read_new(shown, with_table=time.monotonic() >= shown.table_due_s)

    def _read_new(self, shown: _Shown, *, with_table: bool) -> None:
        if shown.is_reading or shown.comparison is None or not self._is_current(shown):
            return
        paths = shown.comparison.paths

        def work() -> _New:
            from core.compare.comparison import compare_runs

            batches = tuple(reader.read_new() for reader in shown.readers)
            began = time.monotonic()
            are_there = all(path.is_dir() for path in paths)
            found = compare_runs([RunStore(path) for path in paths]) if with_table and are_there else None
            return _New(batches, found, time.monotonic() - began)

        def show(new: _New) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                self._show_new(shown, new)

        self._start(shown, work, show)

    def _show_new(self, shown: _Shown, new: _New) -> None:
        for run, batches in zip(shown.page.runs, new.batches, strict=True):
            for batch in batches:
                run.series.apply(batch)
        if new.comparison is not None:
            shown.comparison = new.comparison
            shown.table_due_s = time.monotonic() + LEAST_PAUSE * new.took_s
            shown.page.show_comparison(new.comparison)
        self._show_notes(shown)
        if any(new.batches):
            shown.page.draw_new()

    def _show_notes(self, shown: _Shown) -> None:
        if shown.comparison is not None:
            labels = shown.comparison.labels
            parts = zip(labels, shown.readers, shown.page.runs, strict=True)
            notes = [(label, _note(reader, run.series)) for label, reader, run in parts]
            known = "".join(shown.comparison.notes)
            own = [f"“{label}” {note}" for label, note in notes if note and f"“{label}”" not in known]
            shown.page.show_notes([*shown.comparison.notes, *own])

    def _start(self, shown: _Shown, work: Callable[[], T], show: Callable[[T], None]) -> None:
        def fail(error: RankdeckError) -> None:
            shown.is_reading = False
            if self._is_current(shown):
                shown.page.show_notes([error.cause])

        shown.is_reading = True
        self._runner.run(Operation(work, show, fail))

    # --- closing -----------------------------------------------------------------------------------------

    def _is_current(self, shown: _Shown) -> bool:
        return shown is self._shown and isValid(shown.page)

    def _on_page_shown(self, page: object) -> None:
        """Another page is in front: the comparison is let go, with all that was read for it."""
        if self._shown is not None and page is not self._shown.page:
            self._timer.stop()
            self._window.drop_page(self._shown.page)
            self._shown = None


def _devices(folder: Path) -> tuple[str, ...]:
    """UUIDs of a run's devices by rank, as far as that is known."""
    entry = read_entry(folder)
    return entry.state.devices if entry is not None and entry.state is not None else ()


def _note(reader: RunReader, series: RunSeries) -> str:
    if reader.problem:
        return f"cannot be read any further: {reader.problem}"
    return "" if series.ranks() or series.evals.rows else "has reported no metric yet."
