"""Control of the benchmark page: measures New run's settings in a worker thread and shows the results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.threads.measuring import Cancelled, Measuring, Tell
from app.widgets.open_outside import open_path
from core.errors import RankdeckError

if TYPE_CHECKING:
    from app.bench.bench_page import BenchPage
    from app.bench.bench_text import BenchNews
    from app.devices.device_table import DeviceTable
    from app.window.main_window import MainWindow
    from core.launch.resolved import ResolvedRun
    from core.measure.bench.contenders import Kind
    from core.measure.bench.runner import Progress

# Below the folder of runs.
FOLDER: Final = "benchmarks"
ELSEWHERE: Final = "New run has devices of another machine. Choose some of this computer to measure them."


@dataclass(frozen=True, slots=True)
class _Written:
    """A benchmark at its end.

    Attributes:
        news: What is shown of it.
        folder: Where its files are.
        failure: Why files could not be written; None: they were.
    """

    news: BenchNews
    folder: Path
    failure: RankdeckError | None = None


class BenchController(QObject):
    """Carries out the intents of the benchmark page.

    Attributes:
        page: Once it was opened.
        turns, seconds: As `core.measure.bench.runner.run_bench` takes them.
        folder: The newest results; None: there are none yet.
    """

    def __init__(
        self,
        window: MainWindow,
        table: DeviceTable,
        runs_dir: Path,
        chosen_run: Callable[[], ResolvedRun | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._table = window, table
        self._runs_dir, self._chosen_run = runs_dir, chosen_run
        self._measuring = Measuring(self)
        self.page: BenchPage | None = None
        self.folder: Path | None = None
        self.turns: int | None = None
        self.seconds: float | None = None
        self._measuring.progressed.connect(self._on_progressed)
        self._measuring.found.connect(self._on_written)
        self._measuring.failed.connect(self._on_failed)
        window.actions_.bench.triggered.connect(self.open)

    @property
    def is_going(self) -> bool:
        return self._measuring.is_going

    def open(self) -> None:
        """Shows the page; it stays as it was left, and measures on while another one is shown."""
        from app.bench.bench_page import BenchPage  # here: the window opens without it

        if self.page is None:
            self.page = page = BenchPage()
            page.close_requested.connect(self._window.show_home)
            page.kind_chosen.connect(self.update)
            page.start_requested.connect(self._on_start_requested)
            page.stop_requested.connect(self._measuring.stop)
            page.folder_requested.connect(self._on_folder_requested)
        self.update()
        self._window.show_page(self.page)

    def update(self) -> None:
        page = self.page
        if page is None or page.is_going:
            return
        from app.bench.bench_text import what_is_measured, why_not_measured

        run = self._chosen_run()
        why_not = why_not_measured(page.kind, run, is_training=self._table.has_live_runs)
        if self._window.has_new_run and self._window.new_run.machines.chosen() is not None:
            why_not = ELSEWHERE
        page.show_about("" if why_not or run is None else what_is_measured(page.kind, run), why_not)

    def close(self) -> None:
        """Ends the measurement, and waits a bounded time for its processes."""
        self._measuring.close()

    def _on_start_requested(self) -> None:
        page, run = self.page, self._chosen_run()
        self.update()
        if page is None or run is None or self.is_going or not page.start.isEnabled():
            return
        page.show_started()
        asked = page.kind, run, self._runs_dir, self.turns, self.seconds
        self._measuring.start(lambda tell, cancelled: _measure(*asked, tell, cancelled))

    def _on_progressed(self, news: tuple[str, float, BenchNews | None]) -> None:
        if self.page is not None and self.page.is_going:
            doing, share, measured = news
            self.page.show_progress(doing, share)
            if measured is not None:
                self.page.show_news(measured)

    def _on_written(self, written: _Written) -> None:
        self.folder = written.folder
        if self.page is not None:
            self.page.show_news(written.news)
            self.page.show_ended(has_folder=True)
            if written.failure is not None:
                self.page.show_error(written.failure)
        self.update()

    def _on_failed(self, error: RankdeckError) -> None:
        if self.page is not None:
            self.page.show_ended(has_folder=self.folder is not None)
            self.page.show_error(error)
        self.update()

    def _on_folder_requested(self) -> None:
        if self.folder is not None:
            open_path(self.folder, self._window.notice)


def _measure(
    kind: Kind,
    run: ResolvedRun,
    runs_dir: Path,
    turns: int | None,
    seconds: float | None,
    tell: Tell,
    cancelled: Cancelled,
) -> _Written:
    """Measures and writes the files, in a worker thread: all that takes long, and what the page shows as values."""
    from app.bench.bench_text import bench_news, folder_name
    from core.measure.bench.contenders import find_contenders
    from core.measure.bench.folder import BenchFolder, busy_share, describe
    from core.measure.bench.runner import run_bench

    run, _ = run.fitted()
    counts = sorted({contender.devices for contender in find_contenders(kind, run)})
    environment = describe(kind, run, counts, busy_share())
    name = folder_name(kind, run.recipe.name, time.strftime("%Y-%m-%d-%H%M%S"))
    folder = BenchFolder.make(runs_dir / FOLDER / name, environment)

    def on_progress(progress: Progress) -> None:
        folder.keep(progress.bench)
        has_news = progress.bench.has_figures or progress.bench.has_failures
        tell((progress.doing, progress.share, bench_news(progress.bench) if has_news else None))

    bench = run_bench(kind, run, turns=turns, seconds=seconds, on_progress=on_progress, cancelled=cancelled)
    tell(("Writing files", 1.0, None))
    try:
        no_pictures = folder.write(bench)
    except RankdeckError as error:
        return _Written(bench_news(bench, is_over=True), folder.path, error)
    return _Written(bench_news(bench, is_over=True, no_pictures=no_pictures), folder.path)
