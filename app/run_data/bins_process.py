"""Process that bins a run's long columns while the window is still imported, where that was not done before.

A thread would give up Python's lock with each slice that it reads, and get it back 5 ms later while something else is
imported: 1.1 GB of a run of 10,000,000 steps are some five thousand such slices. No NumPy: the process is started
before that is imported.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from app.run_data.kept_bins import KeptBins, are_of, keep, read_kept
from core.metrics.column_index import ColumnsIndex, read_index
from core.no_window import NO_WINDOW
from core.paths import PACKAGE_FOLDER
from core.run_folder.store import RunStore

# Columns of the charts that nearly every run has; those of others are binned when they are in sight.
PLOTTED_NAMES: Final = ("step", "ts", "loss", "tokens_per_s", "step_time_s", "data_wait_s", "sync_wait_s", "lr")
# Shorter columns are binned in less time than a process needs to start.
LONG_ROWS: Final = 1 << 21


class BinsProcess:
    """Writes what `app.run_data.column_bins` makes of the columns into a file that has no name.

    Args:
        store: The run.
        rows: Of the shortest column that is binned.
    """

    def __init__(self, store: RunStore, rows: int) -> None:
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # `result` or `close` closes it
        command = [sys.executable, "-m", "app.run_data.column_bins", str(store.columns), str(rows), *PLOTTED_NAMES]
        self._process = subprocess.Popen(
            command, cwd=PACKAGE_FOLDER, creationflags=NO_WINDOW,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def result(self, stopping: threading.Event) -> bytes:
        """Waits for all that it writes; nothing if it failed, or was ended because `stopping` was set."""
        watcher = threading.Thread(target=self._end_with, args=(stopping,), daemon=True)
        watcher.start()
        code = self._process.wait()
        watcher.join()
        with self._output:
            if code:
                return b""
            self._output.seek(0)
            return self._output.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _end_with(self, stopping: threading.Event) -> None:
        while self._process.poll() is None:
            if stopping.wait(0.1):
                self._process.kill()
                return


class LongBins:
    """The bins of a run's long columns: those that are kept beside them, or what a process makes of all rows.

    Args:
        folder: The `columns` folder.
        index: Of its columns.
        kept: Those that are kept of them.
        process: What makes them; None: the kept ones are enough.
    """

    def __init__(self, folder: Path, index: ColumnsIndex, kept: KeptBins | None, process: BinsProcess | None) -> None:
        self._folder = folder
        self._index = index
        self._kept = kept
        self._process = process
        self._written = b""

    @classmethod
    def find(cls, store: RunStore) -> LongBins | None:
        """Those of a run with long columns. A process is started where many rows are not binned, and one can be."""
        index = read_index(store.columns)
        if index is None or all(group.rows < LONG_ROWS for group in index.groups.values()):
            return None
        kept, process = read_kept(store.columns, index), None
        if any(group.rows - (kept.rows(group.name) if kept else 0) >= LONG_ROWS for group in index.groups.values()):
            with contextlib.suppress(OSError):  # the thread that reads the run makes them
                process = BinsProcess(store, LONG_ROWS)
        return cls(store.columns, index, kept, process)

    @property
    def has_process(self) -> bool:
        """Whether rows are still being read."""
        return self._process is not None

    def take(self, stopping: threading.Event, index: ColumnsIndex) -> KeptBins | None:
        """The bins, once; waits for the process, if there is one.

        Args:
            stopping: Ends the process.
            index: Of the columns that they are for.

        Returns:
            None if there are none for these columns, or none any more.
        """
        process, kept, self._process, self._kept = self._process, self._kept, None, None
        if process is not None:
            self._written = process.result(stopping)
            kept = KeptBins.parse(self._written)
        elif index == self._index:
            return kept
        return kept if kept is not None and are_of(kept, self._folder, index) else None

    def keep(self) -> None:
        """Writes what a process made beside the columns, for the next time."""
        if self._written:
            keep(self._folder, self._written)
            self._written = b""

    def close(self) -> None:
        """Ends the process, whatever it does."""
        if self._process is not None:
            self._process.close()
