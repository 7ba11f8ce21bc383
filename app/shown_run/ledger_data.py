"""Ledger of the shown run: trained, claimed and remaining chunks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from app.threads.bridge import Feed, Send
from core.errors import RankdeckError
from core.files.stamp import Stamp, stamp_of
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from core.ledger.progress import BlockProgress, LedgerProgress

POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """Contents of the state file.

    Attributes:
        blocks: One strip of chunks each, for the current epoch.
        checkpoint: The committed checkpoint whose weights hold all that; None before the first.
    """

    progress: LedgerProgress
    blocks: tuple[BlockProgress, ...]
    checkpoint: int | None
    chunk_size: int
    samples_per_block: int


def read_ledger(path: Path) -> LedgerSnapshot:
    """Read a state file of ours; raises `StateFileError`."""
    # Here, in the reader's thread: the window opens without it.
    from core.ledger.ledger import Ledger
    from core.ledger.state_file import read_state_file

    file = read_state_file(path)
    ledger = Ledger.from_file(file)
    grid, progress = ledger.setup.grid, ledger.progress()
    # A ledger made from a file holds no claims: resuming makes new claims. A live run's claims are in the file.
    claimed: dict[int, dict[int, int]] = {}
    for chunk in file.in_progress:
        if chunk.epoch == progress.epoch:
            claimed.setdefault(chunk.block_id, {})[chunk.chunk_id] = chunk.gpu_id
    blocks = tuple(
        replace(block, in_progress={**block.in_progress, **claimed.get(block.block_id, {})})
        for block in ledger.blocks()
    )
    return LedgerSnapshot(progress, blocks, ledger.checkpoint, grid.chunk_size, grid.samples_per_block)


class LedgerData(Feed):
    """Reads a run's `chunk_tracker_state.json` whenever it changes.

    Signals:
        changed: A `LedgerSnapshot`, or None when there is no file (yet).
        failed: A `RankdeckError`: the file cannot be understood.
    """

    changed = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.snapshot: LedgerSnapshot | None = None

    def open(self, run_dir: Path) -> None:
        self.close(wait=False)
        path = RunStore(run_dir).ledger

        def work(stopping: threading.Event, send: Send) -> None:
            seen: Stamp | None = None
            while not stopping.is_set():
                stamp = stamp_of(path)
                if stamp is not None and stamp != seen and send(_read(path)):
                    seen = stamp
                stopping.wait(POLL_S)

        self._start("ledger", work)

    def close(self, *, wait: bool = True) -> None:
        super().close(wait=wait)
        if self.snapshot is not None:
            self.snapshot = None
            self.changed.emit(None)

    def _on_item(self, item: object) -> None:
        if isinstance(item, LedgerSnapshot):
            self.snapshot = item
            self.changed.emit(item)
        elif isinstance(item, RankdeckError):
            self.failed.emit(item)


def _read(path: Path) -> LedgerSnapshot | RankdeckError:
    try:
        return read_ledger(path)
    except RankdeckError as error:
        return error
