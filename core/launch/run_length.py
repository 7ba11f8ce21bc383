"""Length of a run, if it is known before its data is read, and notes on unusual lengths. Pure."""

from __future__ import annotations

from typing import Final

from core.data.dataset import DatasetIdentity
from core.errors import sentences
from core.launch.resolved import ResolvedRun
from core.ledger.chunk_grid import ChunkGrid

# With more chunks the shares of devices are alike anyway.
MOST_CHUNKS: Final = 100_000


def samples_known(run: ResolvedRun, dataset: DatasetIdentity) -> bool:
    """Return whether samples can be counted before the data is read: each byte of plain text is a token."""
    if run.recipe.own_samples:
        return True
    own_tokens = run.config.model is None or not run.recipe.uses_model
    return dataset.is_counted and own_tokens and run.config.options.get("tokenizer") == "byte"


def run_notes(run: ResolvedRun, samples: int | None) -> tuple[str, ...]:
    """Return notes on a run's length; `samples`: those to train on, None before the data is read."""
    config = run.config
    notes: list[str] = []
    limits = [config.steps] if config.steps is not None else []
    if samples is not None and config.epoch_limit is not None:
        limits.append(config.epoch_limit * run.steps_per_epoch(samples))
    warmup = config.options.get("warmup_steps")
    if limits and isinstance(warmup, int) and warmup >= min(limits) > 0:
        notes.append(
            f"The warm-up has {warmup:,} steps and the run {min(limits):,}: the learning rate does not reach its peak "
            "before the end. A shorter warm-up (warmup_steps) or more steps change that."
        )
    if samples is not None:
        notes += [sentences(*unequal_shares(samples, run))] if unequal_shares(samples, run) else []
    return tuple(notes)


def unequal_shares(samples: int, run: ResolvedRun) -> tuple[str, ...]:
    """Return cause and next step if independent devices differ by more than one step, over all epochs."""
    config, batch = run.config, run.batch.global_
    epochs = config.epoch_limit
    if epochs is None or samples < 1 or run.replica_groups < 2:
        return ()

    def steps(chunk_size: int) -> list[int]:
        grid = ChunkGrid(samples, config.samples_per_block, chunk_size)
        if grid.chunks > MOST_CHUNKS:
            return []
        return [-(-share // batch) for share in grid.shares(run.world_size, epochs)]

    now = steps(config.dataset_chunk_size)
    if not now or max(now) - min(now) <= 1 or (config.steps is not None and config.steps <= min(now)):
        return ()
    sizes = (-(-samples // (run.world_size * parts)) for parts in range(1, 65))
    even = next((size for size in sizes if size <= config.dataset_chunk_size and _alike(steps(size))), None)
    counts = " and ".join(f"{count:,}" for count in sorted(set(now), reverse=True))
    cause = f"The devices get unequal shares of the data: {counts} steps, because whole chunks are shared out."
    if even is None:
        return (cause,)
    return cause, f"With a chunk size (dataset_chunk_size) of {even:,} samples they are alike."


def _alike(steps: list[int]) -> bool:
    return bool(steps) and max(steps) - min(steps) <= 1
