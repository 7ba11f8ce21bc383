"""How much work a run is, and what a fallback makes of its config."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.config.batch import resolve_batch
from core.launch.resolved import ResolvedRun
from core.launch.work_plan import independent_on_all, on_one_device, total_steps
from core.ledger.ledger import Ledger
from core.machine.devices import Device
from core.protocol.messages import ChunkDone, Position
from tests.helpers.resolved_run import resolved_run

pytestmark = pytest.mark.windows


def run(config: RunConfig, groups: int, world_size: int) -> ResolvedRun:
    mode = "independent" if groups > 1 else "ddp" if world_size > 1 else "single"
    return resolved_run(config, mode, world_size)


@pytest.mark.parametrize(
    ("config", "groups", "world", "samples", "steps"),
    [
        (RunConfig(steps=50), 1, 2, 1_000, 50),
        (RunConfig(epochs=1, global_batch_size=30), 1, 2, 1_000, 34),
        (RunConfig(epochs=3, global_batch_size=30), 1, 2, 1_000, 102),
        (RunConfig(epochs=3, steps=40, global_batch_size=30), 1, 2, 1_000, 40),
        (RunConfig(global_batch_size=30), 1, 1, 1_000, 34),  # neither steps nor epochs: one pass
        (RunConfig(epochs=1, global_batch_size=10, dataset_chunk_size=100), 2, 2, 250, 15),  # 100 + 50 | 100
        (RunConfig(epochs=2, global_batch_size=10, dataset_chunk_size=100), 2, 2, 250, 25),  # they change places
    ],
)
def test_how_much_work_a_run_is(config: RunConfig, groups: int, world: int, samples: int, steps: int) -> None:
    assert total_steps(run(config, groups, world), ledger(config, groups, world, samples), {}) == steps


def ledger(config: RunConfig, groups: int, world: int, samples: int) -> Ledger:
    cut = (samples, config.samples_per_block, config.dataset_chunk_size)
    return Ledger.new({}, *cut, config.seed, world, groups, config.epoch_limit)


def trained(made: Ledger, chunks: int, batch: int) -> dict[int, int]:
    """Commits a number of chunks of every replica group and half of one more; returns each group's steps for it."""
    positions = {}
    for group in range(made.setup.groups):
        grants = [made.claim(group, sequence) for sequence in range(chunks + 1)]
        samples = sum(grant.count for grant in grants[:-1]) + 50
        done = [ChunkDone(g.epoch, g.block_id, g.chunk_id, 1, g.count) for g in grants[:-1]]
        last = grants[-1]
        positions[group] = Position(samples // batch, samples, done, [[last.epoch, last.block_id, last.chunk_id, 50]])
    made.commit(positions, 1)
    return {group: position.step for group, position in positions.items()}


@pytest.mark.parametrize(("groups", "epochs", "chunks"), [(1, 1, 3), (1, 3, 12), (2, 2, 3), (2, 5, 7)])
def test_a_resumed_run_has_as_much_work_as_one_that_was_never_stopped(groups: int, epochs: int, chunks: int) -> None:
    config = RunConfig(epochs=epochs, global_batch_size=10, dataset_chunk_size=100)
    fresh, begun = ledger(config, groups, 2, 1_000), ledger(config, groups, 2, 1_000)
    done = trained(begun, chunks, 10)
    whole = total_steps(run(config, groups, 2), fresh, {})
    assert total_steps(run(config, groups, 2), begun, done) == whole


def test_imported_chunks_are_no_work_of_this_run() -> None:
    config = RunConfig(epochs=1, global_batch_size=10, dataset_chunk_size=100)
    begun = ledger(config, 1, 2, 1_000)
    trained(begun, 3, 10)
    assert total_steps(run(config, 1, 2), begun, {}) == 65


def test_a_fallback_keeps_the_global_batch() -> None:
    config = RunConfig(mode="ddp", devices=("cpu:2",), batch_size=4, grad_accum_steps=3, global_batch_size=24)
    alone = on_one_device(config, Device("cpu:1", "cpu", 1, "CPU"), resolve_batch(config, 2))
    batch = resolve_batch(alone, 1)
    assert (batch.micro, batch.accumulation, batch.global_) == (4, 6, 24)
    assert (alone.mode, alone.devices) == ("single", ("cpu:0",))  # a lone CPU device, whichever it was


@pytest.mark.parametrize(("asked", "kept"), [("best", "best"), ("average", "best"), ("none", "none")])
def test_a_fallback_to_independent_devices_keeps_the_best_and_each_devices_share(asked: str, kept: str) -> None:
    config = RunConfig(mode="ddp", devices=("cpu:2",), global_batch_size=24, merge_policy=asked, sync_every=5)
    apart = independent_on_all(config, resolve_batch(config, 2))
    batch = resolve_batch(apart, 1)
    assert (batch.micro, batch.accumulation, batch.global_) == (6, 2, 12)
    assert (apart.mode, apart.merge_policy, apart.sync_every) == ("independent", kept, None)
