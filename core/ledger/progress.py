"""The ledger as others see it: progress, the strip of blocks, and the state file's keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core.ledger.chunk_grid import LedgerSetup
from core.ledger.committed import Committed
from core.ledger.state_file import FORMAT, VERSION, ChunkInProgress, CompletedChunk


@dataclass(frozen=True, slots=True)
class LedgerProgress:
    """Progress by committed weights: of the lowest epoch that is not finished, and over all epochs.

    Attributes:
        chunks_in_progress: Claimed or partly trained, of any epoch.
        samples_trained, samples_skipped: Over all epochs.
    """

    epoch: int
    epochs: int | None
    chunks_total: int
    chunks_done: int
    chunks_in_progress: int
    samples_total: int
    samples_done: int
    samples_trained: int
    samples_skipped: int
    finished: bool


@dataclass(frozen=True, slots=True)
class BlockProgress:
    """One block of the current epoch, for the strip in the window: chunk ids to the rank that trained or has each."""

    block_id: int
    chunks: int
    done: Mapping[int, int]
    in_progress: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LedgerView:
    setup: LedgerSetup
    committed: Committed
    in_progress: Sequence[ChunkInProgress]

    @property
    def epoch(self) -> int:
        """The lowest unfinished epoch; when all are finished, the last: its blocks are then all done."""
        return self.committed.epoch if self.setup.epochs is None else min(self.committed.epoch, self.setup.epochs - 1)

    def progress(self) -> LedgerProgress:
        done = self.committed.done.get(self.epoch, {})
        partial = sum(p.samples_done for (epoch, _), p in self.committed.partial.items() if epoch == self.epoch)
        return LedgerProgress(
            epoch=self.epoch,
            epochs=self.setup.epochs,
            chunks_total=self.setup.grid.chunks,
            chunks_done=len(done),
            chunks_in_progress=len(self.in_progress),
            samples_total=self.setup.grid.samples,
            samples_done=sum(chunk.samples for chunk in done.values()) + partial,
            samples_trained=self.committed.samples_trained,
            samples_skipped=self.committed.samples_skipped,
            finished=self.setup.epochs is not None and self.committed.epoch >= self.setup.epochs,
        )

    def blocks(self) -> list[BlockProgress]:
        done: list[dict[int, int]] = [{} for _ in range(self.setup.grid.blocks)]
        going: list[dict[int, int]] = [{} for _ in range(self.setup.grid.blocks)]
        for chunk in self.committed.done.get(self.epoch, {}).values():
            done[chunk.block_id][chunk.chunk_id] = chunk.gpu_id
        for item in self.in_progress:
            if item.epoch == self.epoch:
                going[item.block_id][item.chunk_id] = item.gpu_id
        return [
            BlockProgress(b, self.setup.grid.chunks_in(b), done[b], going[b]) for b in range(self.setup.grid.blocks)
        ]

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **self._aios_keys(), **self._own_keys()}

    def _aios_keys(self) -> dict[str, Any]:
        this_epoch = self._blocks_done(self.committed.done.get(self.epoch, {}))
        started = {chunk.block_id for chunks in self.committed.done.values() for chunk in chunks.values()}
        started.update(item.block_id for item in self.in_progress)
        every = list(range(self.setup.grid.blocks))
        return {
            "brain_id": self.setup.run_id,
            "dataset_name": _aios_name(str(self.setup.dataset.get("path", ""))),
            "completed_chunks": [
                {
                    "block_id": chunk.block_id,
                    "chunk_id": chunk.chunk_id,
                    "gpu_id": chunk.gpu_id,
                    "optimizer_step": chunk.optimizer_step,
                    "steps": chunk.samples,
                    "epoch": chunk.epoch,
                }
                for _, chunks in sorted(self.committed.done.items())
                for chunk in chunks.values()
            ],
            "started_blocks": every if self.epoch > 0 else sorted(started),
            "completed_blocks": every if self.epoch > 0 else this_epoch,
            "current_epoch": self.epoch,
            "blocks_this_epoch": this_epoch,
            "total_blocks_in_dataset": self.setup.grid.blocks,
            "total_steps": self.committed.samples_completed,
            "in_progress_chunks": [asdict(item) for item in self.in_progress],
        }

    def _own_keys(self) -> dict[str, Any]:
        return {
            "samples": self.setup.grid.samples,
            "samples_per_block": self.setup.grid.samples_per_block,
            "chunk_size": self.setup.grid.chunk_size,
            "samples_trained": self.committed.samples_trained,
            "skipped_batches": [asdict(batch) for batch in self.committed.skipped],
            "seed": self.setup.seed,
            "dataset": dict(self.setup.dataset),
            "world_size": self.setup.world,
            "lanes": self.setup.groups,
            "epochs": self.setup.epochs,
            "checkpoint": self.committed.checkpoint,
        }

    def _blocks_done(self, done: Mapping[int, CompletedChunk]) -> list[int]:
        counts: dict[int, int] = {}
        for chunk in done.values():
            counts[chunk.block_id] = counts.get(chunk.block_id, 0) + 1
        return sorted(block for block, count in counts.items() if count == self.setup.grid.chunks_in(block))


def _aios_name(path: str) -> str | None:
    """A dataset's name as AI-OS makes it: the file's stem, at most 50 characters."""
    stem = re.split(r"[\\/]", path.rstrip("\\/"))[-1].rsplit(".", 1)[0]
    return re.sub(r"[^\w-]", "_", stem)[:50] or None
