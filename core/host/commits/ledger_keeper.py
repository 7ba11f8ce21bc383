"""The live ledger of a run, and `chunk_tracker_state.json` as its projection."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import Checkpoint
from core.config import RunConfig
from core.errors import StateFileError
from core.fault_points import reach
from core.files.atomic import write_atomic
from core.ledger.ledger import Ledger
from core.ledger.state_file import LedgerFile, read_state_file
from core.protocol.messages import Claim, DataReady, Grant, Position

log = logging.getLogger(__name__)

# The file names claimed chunks for people to look at; nothing is resumed from those, so they may be a little late.
WRITE_EVERY_S: Final = 2.0


class LedgerKeeper:
    """Makes the ledger when the data is ready, answers claims, and provides the contents of the state file."""

    def __init__(self, path: Path, config: RunConfig, dataset: Mapping[str, Any], run_id: str) -> None:
        self.path = path
        self._config = config
        self._dataset = dataset
        self._run_id = run_id
        self._dirty = False
        self._next_write = 0.0
        self.ledger: Ledger | None = None

    def committed_checkpoint(self) -> int | None:
        """The committed checkpoint by the state file; None when it names none, or cannot be read."""
        if not self.path.exists():
            return None
        try:
            return read_state_file(self.path).checkpoint
        except StateFileError as error:
            # A resume refuses such a file before it starts a host.
            log.warning("%s", error)
            return None

    def prepare(self, data: DataReady, checkpoint: Checkpoint | None, world: int, groups: int) -> None:
        """Make the ledger for an attempt, continued or new; raises `StateFileError` for other data."""
        config = self._config
        chunk_size = data.chunk_size or config.dataset_chunk_size
        block_size = max(config.samples_per_block, data.chunk_size or 0)
        # A program with data of its own says itself how often it reads it (`chunk_size` is how it is known here).
        epochs = config.epochs if data.chunk_size else config.epoch_limit
        file = read_state_file(self.path) if checkpoint is None and self.path.exists() else None
        ledger = _continued(checkpoint, file)
        if ledger is not None:
            ledger.check_same(self._dataset, chunk_size, block_size, data.samples)
            ledger.change(world=world, groups=groups, epochs=epochs)
        else:
            cut = (data.samples, block_size, chunk_size, config.seed)
            ledger = Ledger.new(self._dataset, *cut, world, groups, epochs, self._run_id)
            # The run was made from it, but not its weights.
            if file is not None and file.form != "rankdeck":
                ledger.import_aios(file)
        self.ledger = ledger
        self._dirty = True

    def claim(self, rank: int, claim: Claim) -> Grant:
        """Answer a rank's claim; raises `LedgerConflictError`, and `StateFileError` before the data is ready."""
        if self.ledger is None:
            raise StateFileError(f"Rank {rank} claimed a chunk before the data was ready.", "Start the run again.")
        self._dirty = True
        return self.ledger.claim(self.ledger.setup.group_for(rank), claim.sequence)

    def preview(self, positions: Mapping[int, Position], checkpoint: int) -> dict[str, Any]:
        if self.ledger is None:
            raise StateFileError("A rank commits before the data was ready.", "Start the run again.")
        return self.ledger.preview(positions, checkpoint)

    def commit(self, positions: Mapping[int, Position], checkpoint: int) -> None:
        if self.ledger is not None:
            self.ledger.commit(positions, checkpoint)
            self._dirty = True
            self._next_write = 0.0

    def due(self) -> dict[str, Any] | None:
        if not self._dirty or self.ledger is None or time.monotonic() < self._next_write:
            return None
        self._dirty = False
        began = time.monotonic()
        document = self.ledger.as_dict()
        # On the loop's thread: a ledger of very many chunks is written less often.
        took_s = time.monotonic() - began
        self._next_write = began + max(WRITE_EVERY_S, 100.0 * took_s)
        return document

    def failed(self) -> None:
        self._dirty = True


def _continued(checkpoint: Checkpoint | None, file: LedgerFile | None) -> Ledger | None:
    """The ledger of a checkpoint, else that of a state file that an attempt made of AI-OS's.

    Such an attempt ended before its first checkpoint: only AI-OS's completed chunks can stand in its file.
    """
    if checkpoint is not None:
        return Ledger.from_dict(checkpoint.ledger(), checkpoint.folder)
    if file is not None and file.form == "rankdeck" and file.checkpoint is None and file.completed:
        return Ledger.from_file(file)
    return None


def write_ledger(path: Path, document: Mapping[str, Any], checkpoint: int = -1) -> None:
    reach("ledger_replace", checkpoint)
    write_atomic(path, json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    reach("ledger_replaced", checkpoint)
