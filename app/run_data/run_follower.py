"""Reads one run's folder in a thread: existing lines first, then new ones, each once."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from app.run_data.column_bins import take_bins
from app.run_data.long_bins import PLOTTED_NAMES, kill_when
from app.run_data.metrics_batch import Event, Rewound, parse_lines, read_events
from app.run_data.run_series import RunSeries
from core.errors import RankdeckError, StateFileError
from core.files.stamp import Stamp, stamp_of
from core.metrics.column_index import EVENTS_NAME, ColumnsIndex, read_index
from core.metrics.metrics_file import MetricsTail
from core.paths import PACKAGE_FOLDER
from core.program_search import NO_WINDOW
from core.run_folder.state import RunState

if TYPE_CHECKING:
    from app.run_data.long_bins import LongBins
    from core.run_folder.store import RunStore

SLICE_BYTES: Final = 1 << 20
REBUILD_BYTES: Final = 32 << 20
CONNECT_TIMEOUT_S: Final = 2.0
MESSAGE_WAIT_S: Final = 0.25
LIVE_POLL_S: Final = 0.25
IDLE_POLL_S: Final = 1.0
RETRY_POLLS: Final = 8
ADOPT_EVERY_BYTES: Final = 64 << 20
_log = logging.getLogger(__name__)


class Connection(Protocol):
    def messages(self, timeout_s: float) -> Sequence[object]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """The run's series as its columns hold them, or empty ones; everything shown before is void."""

    series: RunSeries


@dataclass(frozen=True, slots=True)
class OldEvents:
    """The events that belong to the rows of `Opened`, read after the first picture."""

    events: list[Event]


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns folder holds these rows by now: memory can let go of them."""

    folder: Path
    index: ColumnsIndex


@dataclass(frozen=True, slots=True)
class Progress:
    """Reading a long run: `done` of 1, or None when it is not known how much there is."""

    text: str
    done: float | None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything that the file held when it was opened has been sent."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The run, or a part of it, cannot be read."""

    error: RankdeckError


@dataclass(slots=True)
class RunFollower:
    """Sends a run's content in order: `RunState`s, `Opened`, `MetricsBatch`es, `CaughtUp`, then batches for ever.

    The file is the stream: a message from the host only says how far to read. So it makes no difference whether
    there is a host, whether it dies, or whether messages are lost; lines come once, in the file's order.

    Attributes:
        send: Takes an item and says whether it was taken (`app.threads.bridge.Mailbox.put`).
        connect: Opens a connection to the run's host, or raises `RankdeckError` / `OSError`; None: never connect.
    """

    store: RunStore
    send: Callable[[Any], bool]
    connect: Callable[[RunStore, float], Connection] | None
    stopping: threading.Event
    bins: LongBins | None = None
    _tail: MetricsTail = field(init=False)
    _seen_state: tuple[Stamp | None, RunState] | None = None
    _sent_state: RunState | None = None
    _rewound_at: int = 0
    _adopted_at: int = 0
    _polls: int = 0
    _state_problem: str = ""

    def __post_init__(self) -> None:
        self._tail = MetricsTail(self.store.metrics)

    def run(self) -> None:
        try:
            self._read()
        finally:
            if self.bins is not None:
                self.bins.close()

    def _read(self) -> None:
        state = self._send_state()
        self._open(live=state is not None and state.is_live)
        while not self.stopping.is_set():
            if self._file_shrank():
                self._open(live=True)
            state = self._send_state()
            self._read_on()
            if state is not None and state.is_live:
                self._follow_host()
                self.stopping.wait(LIVE_POLL_S)
            else:
                self.stopping.wait(IDLE_POLL_S)

    # --- what is there -----------------------------------------------------------------------------------

    def _open(self, live: bool) -> None:
        index = self._usable_columns(live)
        bins, series = self.bins, RunSeries()
        if index is not None:
            series = RunSeries.of_columns(self.store.columns, index)
            if bins is not None:
                made = bins.take(self.stopping, index)
                if made is not None:
                    take_bins(made, series.groups)
            series.make_bins(PLOTTED_NAMES)
        self._tail = MetricsTail(self.store.metrics, index.source_bytes if index is not None else 0)
        self._rewound_at = self._adopted_at = self._tail.offset
        self._put(Opened(series))
        if index is not None and index.events_bytes:
            with contextlib.suppress(OSError):
                self._put(OldEvents(read_events(self.store.columns / EVENTS_NAME, index.events_bytes)))
        self._read_on(progress=True)
        self._put(CaughtUp())
        if bins is not None:
            bins.keep()  # last: the picture does not wait for it
            bins.close()
            self.bins = None

    def _usable_columns(self, live: bool) -> ColumnsIndex | None:
        """Return the index of the columns folder; a missing or stale one is rebuilt first where that is faster."""
        index = self._current_index()
        behind = self._size() - (index.source_bytes if index is not None else 0)
        if not live and behind >= REBUILD_BYTES and self._rebuild():
            return self._current_index() or index
        return index

    def _current_index(self) -> ColumnsIndex | None:
        index = read_index(self.store.columns)
        return index if index is not None and index.belongs_to(self.store.metrics, self.store.columns) else None

    def _rebuild(self) -> bool:
        """Makes the columns folder in another process, so that the window stays quick."""
        text = "Reading this run for the first time"
        self._put(Progress(text, None))
        command = [sys.executable, "-m", "core.run_folder.rebuild_columns", str(self.store.dir)]
        try:
            process = subprocess.Popen(
                command, cwd=PACKAGE_FOLDER, creationflags=NO_WINDOW, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError:
            return False
        with process:
            watcher = threading.Thread(target=kill_when, args=(self.stopping, process), daemon=True)
            watcher.start()
            for line in process.stdout or ():
                with contextlib.suppress(ValueError):
                    self._put(Progress(text, float(line)))
        watcher.join()
        self._put(Progress("", None))
        return process.returncode == 0

    # --- what comes --------------------------------------------------------------------------------------

    def _read_on(self, progress: bool = False) -> None:
        start, size = self._tail.offset, self._size()
        long = progress and size - start > 8 * SLICE_BYTES
        while not self.stopping.is_set():
            try:
                lines = self._tail.read(SLICE_BYTES)
            except RankdeckError as error:
                self._put(Problem(error))
                break
            if not lines:
                break
            batch = parse_lines(lines)
            if any(isinstance(part, Rewound) for part in batch.parts):
                self._rewound_at = self._tail.offset
            self._put(batch)
            if long:
                self._put(Progress("Reading this run", min(1.0, (self._tail.offset - start) / (size - start))))
        if long:
            self._put(Progress("", None))
        if self._tail.offset - self._adopted_at > ADOPT_EVERY_BYTES:
            self._adopt()

    def _adopt(self) -> None:
        index = read_index(self.store.columns)
        if index is not None and self._rewound_at <= index.source_bytes <= self._tail.offset:
            self._adopted_at = index.source_bytes
            self._put(Kept(self.store.columns, index))

    def _follow_host(self) -> None:
        """Listens to the host while it talks."""
        self._polls += 1
        if self.connect is None or (self._polls - 1) % RETRY_POLLS:
            return
        try:
            connection = self.connect(self.store, CONNECT_TIMEOUT_S)
        except (RankdeckError, OSError) as error:
            _log.debug("no connection to the run's host, following its file: %s", error)
            return
        try:
            self._read_on()
            while not self.stopping.is_set():
                messages = connection.messages(MESSAGE_WAIT_S)
                if not messages:
                    # Of a run on another machine the message may be here before the lines.
                    self._read_on()
                for message in messages:
                    self._on_message(message)
                    if self.stopping.is_set():
                        return
        except (RankdeckError, OSError):
            # The host ended or was killed: its file and state tell what happened.
            self._polls = 0
        finally:
            connection.close()

    def _on_message(self, message: object) -> None:
        from core.protocol.messages import Appended, RunStatus  # here: a run that is not live needs none

        if isinstance(message, Appended):
            if message.size_bytes > self._tail.offset:
                self._read_on()
        elif isinstance(message, RunStatus):
            with contextlib.suppress(StateFileError):
                self._put_state(RunState.from_dict(message.state))

    def _send_state(self) -> RunState | None:
        """Send the run's state on when it changed; the file is read only when it did."""
        try:
            stamp = stamp_of(self.store.state_json)
            if self._seen_state is None or stamp is None or self._seen_state[0] != stamp:
                self._seen_state = (stamp, self.store.stored_state())
            self._state_problem = ""
        except (OSError, RankdeckError) as error:
            if str(error) != self._state_problem:
                self._state_problem = str(error)
                self._put(Problem(_explained(error)))
            return None
        state = self.store.seen(self._seen_state[1])
        self._put_state(state)
        return state

    def _put_state(self, state: RunState) -> None:
        if state != self._sent_state:
            self._sent_state = state
            self._put(state)

    def _put(self, item: Any) -> None:
        """Waits until there is room: a slow window slows the reading down, it loses nothing."""
        while not self.stopping.is_set() and not self.send(item):
            self.stopping.wait(0.01)

    def _size(self) -> int:
        try:
            return self.store.metrics.stat().st_size
        except OSError:
            return 0

    def _file_shrank(self) -> bool:
        """True when another file is in its place."""
        return self._size() < self._tail.offset


def _explained(error: OSError | RankdeckError) -> RankdeckError:
    if isinstance(error, RankdeckError):
        return error
    return RankdeckError(f"{error}.", "Check that the run's folder is still there.", title="This run cannot be read")
